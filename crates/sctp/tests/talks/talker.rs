//! The application at one end, whoever wrote its SCTP.

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Command, Endpoint, Event, Input, Message, Output, Reliability, drain};
use hol_wire::Packet;

use super::{Ended, Side, Talk, filled, is_whole};

/// What came of it.
#[derive(Debug, Default, Clone)]
pub struct Done {
    pub got: u32,
    pub wrong: u32,
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
            ending: false,
        }
    }

    /// The client opens.
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
    }

    /// Does all that is to be done now and gives packets to `send`; until when.
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
                self.done.wrong += u32::from(!is_whole(&received.payload, self.talk.size));
                if self.side == Side::Server && self.talk.echo {
                    self.to_echo.push(self.message(received.stream, received.payload, true));
                }
            }
            Event::PeerClosed => self.tell(now, Command::Close),
            Event::Closed => self.done.ended = Some(Ended::Closed),
            Event::Failed { .. } => {
                self.done.ended.get_or_insert(if self.ending { Ended::Aborted } else { Ended::Reset });
            }
            Event::Writable | Event::Abandoned { .. } | Event::Path { .. } => {}
        }
    }

    /// Sends what there is to send, and ends what is done; whether anything was.
    fn say(&mut self, now: Time) -> bool {
        let Talk { messages, size, streams, echo, end, .. } = self.talk;
        let mut has_said = false;
        while self.side == Side::Client
            && self.connected
            && self.sent < messages
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

    fn message(&self, stream: u16, payload: Bytes, is_last: bool) -> Message {
        let Talk { retransmissions, unordered, .. } = self.talk;
        let reliability =
            retransmissions.filter(|_| !is_last).map_or(Reliability::Full, Reliability::Retransmissions);
        Message { stream, unordered, reliability, ppid: 0, payload }
    }
}
