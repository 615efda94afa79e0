//! The application at one end, independent of its SCTP implementation.

use std::collections::BTreeMap;

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Command, Endpoint, Event, Input, Message, Output, Reconfiguration, Reliability, drain};
use hol_wire::Packet;

use super::{Ended, Side, Talk, filled, number_of};

/// The results of an exchange at one end.
#[derive(Debug, Default, Clone)]
pub struct Done {
    pub got: u32,
    /// Number of messages that were changed or reordered.
    pub wrong: u32,
    /// Number of resets of this end's streams, and of the peer's, counted by stream: a reset may be split.
    pub resets: [u32; 2],
    pub ended: Option<Ended>,
}

pub struct Talker<E> {
    side: Side,
    talk: Talk,
    endpoint: E,
    pub done: Done,
    connected: bool,
    sent: u32,
    to_echo: Vec<Message>,
    /// The number of the last message of each stream.
    last: BTreeMap<u16, u32>,
    /// Number of times that the client has reset its streams.
    resets: u32,
    /// The refused request, repeated after the peer's next event: Linux refuses a request that crosses its
    /// own. RFC 6525 section 4.4, result 4.
    refused: Option<Reconfiguration>,
    ending: bool,
}

impl<E: Endpoint> Talker<E> {
    pub fn new(side: Side, talk: &Talk, endpoint: E) -> Self {
        Self {
            side,
            talk: *talk,
            endpoint,
            done: Done::default(),
            connected: false,
            sent: 0,
            to_echo: Vec::new(),
            last: BTreeMap::new(),
            resets: 0,
            refused: None,
            ending: false,
        }
    }

    /// Connects, if this is the client.
    pub fn begin(&mut self, now: Time) {
        if self.side == Side::Client {
            self.tell(now, Command::Connect);
        }
    }

    fn tell(&mut self, now: Time, command: Command) {
        self.endpoint.handle(now, Input::Command(command));
    }

    pub fn arrives(&mut self, now: Time, packet: Packet) {
        self.endpoint.handle(now, Input::Packet(packet));
        if let Some(what) = self.refused.take() {
            self.tell(now, Command::Reconfigure(what));
        }
    }

    /// Performs all actions that are due and passes packets to `send`; returns the next deadline.
    pub fn go_on(&mut self, now: Time, mut send: impl FnMut(Packet)) -> Option<Time> {
        loop {
            let mut events = Vec::new();
            let due = drain(&mut self.endpoint, now, |_, output| match output {
                Output::Transmit(packet) => send(packet),
                Output::Event(event) => events.push(event),
                Output::Wait(_) => {}
            });
            let has_heard = !events.is_empty();
            events.into_iter().for_each(|event| self.hear(now, event));
            let has_said = self.done.ended.is_none() && self.say(now);
            if !has_heard && !has_said {
                return due;
            }
        }
    }

    fn hear(&mut self, now: Time, event: Event) {
        match event {
            Event::Connected => self.connected = true,
            Event::Received(received) => {
                self.done.got += 1;
                self.done.wrong += u32::from(!self.is_right(received.stream, &received.payload));
                if self.side == Side::Server && self.talk.echo {
                    self.to_echo.push(self.message(received.stream, received.payload, true));
                }
            }
            Event::Reconfigured { what: Reconfiguration::ResetIncoming(streams), done: true } => {
                self.done.resets[1] += self.count(&streams);
                if self.side == Side::Server {
                    self.tell(now, Command::Reconfigure(Reconfiguration::ResetOutgoing(streams)));
                }
            }
            Event::Reconfigured { what: Reconfiguration::ResetOutgoing(streams), done: true } => {
                self.done.resets[0] += self.count(&streams);
            }
            Event::Reconfigured { what, done: false } => self.refused = Some(what),
            Event::PeerClosed => self.tell(now, Command::Close),
            Event::Closed => self.done.ended = Some(Ended::Closed),
            Event::Failed { .. } => {
                self.done.ended.get_or_insert(if self.ending { Ended::Aborted } else { Ended::Reset });
            }
            Event::Writable | Event::Abandoned { .. } | Event::Path { .. } | Event::Reconfigured { .. } => {}
        }
    }

    /// Sends the messages that may be sent, and ends a completed exchange; returns whether it did anything.
    fn say(&mut self, now: Time) -> bool {
        let Talk { messages, size, streams, echo, end, .. } = self.talk;
        let mut has_said = self.reset_if_due(now);
        while self.side == Side::Client
            && self.connected
            && self.sent < messages
            && !self.waits_for_reset()
            && self.endpoint.can_send(size)
        {
            let stream = (self.sent % u32::from(streams)) as u16;
            let is_last = self.sent + u32::from(streams) >= messages;
            let message = self.message(stream, filled(self.sent, size), is_last);
            self.tell(now, Command::Send(message));
            self.sent += 1;
            has_said = true;
        }
        while !self.to_echo.is_empty() && self.endpoint.can_send(size) {
            let message = self.to_echo.remove(0);
            self.tell(now, Command::Send(message));
            has_said = true;
        }
        let has_all = match self.side {
            Side::Client => self.sent == messages && (!echo || self.done.got == messages),
            Side::Server => self.done.got == messages && self.to_echo.is_empty(),
        };
        if has_all && !self.ending && end.by() == self.side {
            self.ending = true;
            self.tell(now, if end.is_abort() { Command::Abort } else { Command::Close });
            return true;
        }
        has_said
    }

    /// Returns the number of streams; an empty list means all.
    fn count(&self, streams: &[u16]) -> u32 {
        if streams.is_empty() { self.talk.streams.into() } else { streams.len() as u32 }
    }

    /// Returns whether all messages before the next reset have been sent.
    fn waits_for_reset(&self) -> bool {
        self.talk.resets.is_some_and(|every| self.sent == (self.resets + 1) * every)
    }

    /// Resets the streams if all messages have returned to the client and the last reset of both ends is complete; returns whether it did.
    fn reset_if_due(&mut self, now: Time) -> bool {
        let resets = self.resets * u32::from(self.talk.streams);
        let all_is_back = self.done.got == self.sent && self.done.resets == [resets; 2];
        let is_due = all_is_back && self.sent < self.talk.messages && self.waits_for_reset();
        if is_due {
            self.resets += 1;
            let streams = (0..self.talk.streams).collect();
            self.tell(now, Command::Reconfigure(Reconfiguration::ResetOutgoing(streams)));
        }
        is_due
    }

    fn is_right(&mut self, stream: u16, payload: &Bytes) -> bool {
        let Some(number) = number_of(payload, self.talk.size) else { return false };
        let before = self.last.insert(stream, number);
        self.talk.unordered || before.is_none_or(|before| before < number)
    }

    fn message(&self, stream: u16, payload: Bytes, is_last: bool) -> Message {
        let Talk { retransmissions, unordered, .. } = self.talk;
        let reliability =
            retransmissions.filter(|_| !is_last).map_or(Reliability::Full, Reliability::Retransmissions);
        Message { stream, unordered, reliability, ppid: 0, payload }
    }
}
