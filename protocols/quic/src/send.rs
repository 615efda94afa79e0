//! Writes messages to streams, and sends packets. RFC 9000 sections 2.2 and 13.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use hol_base::Time;
use hol_transport::{Event, Message};
use quinn_proto::{Connection, Dir, SendDatagramError, Side, StreamId};

use crate::packet_form::PacketForm;
use crate::{Endpoint, MessageMapping, clock};

/// The streams to the peer, and the messages that wait until they can be written.
#[derive(Debug, Default)]
pub(crate) struct OutgoingStreams {
    /// The control stream, whose end means that no more data follow.
    pub(crate) control: Option<StreamId>,
    /// The QUIC stream for each stream of the application.
    pub(crate) streams: Vec<StreamId>,
    /// Messages that wait until quinn-proto takes more octets. While any message waits, the endpoint accepts no
    /// new ones.
    pub(crate) waiting_messages: VecDeque<WaitingMessage>,
    /// Messages that the client has sent as 0-RTT data, until the server accepts or rejects them.
    pub(crate) early_messages: Vec<Message>,
    /// Number of octets written to streams and datagrams before the end of the handshake.
    early_octets: usize,
}

/// A message that waits until quinn-proto takes more octets, or the part of it that has not been written.
#[derive(Debug)]
pub(crate) struct WaitingMessage {
    /// The stream of the message; `None` if none has been opened yet.
    stream: Option<StreamId>,
    octets: Bytes,
}

impl OutgoingStreams {
    /// Returns whether the connection is open.
    pub(crate) fn is_open(&self) -> bool {
        self.control.is_some()
    }
}

impl<S: PacketForm> Endpoint<S> {
    /// Opens the persistent streams of an open connection.
    pub(crate) fn open_streams(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        let streams = if self.mapping == MessageMapping::Streams { self.config.streams } else { 0 };
        let mut open = || connection.streams().open(Dir::Uni).expect("a configuration is checked first");
        self.outgoing.control = Some(open());
        self.outgoing.streams = (0..streams).map(|_| open()).collect();
    }

    /// Queues a message, and writes as much of it as the streams take.
    pub(crate) fn send(&mut self, message: Message) {
        if self.sends_early() {
            self.outgoing.early_messages.push(message.clone());
        }
        self.queue(message);
        self.write();
    }

    /// Returns whether the client now sends 0-RTT data, before the end of the handshake.
    fn sends_early(&self) -> bool {
        let connection = self.connection.as_ref().map(|(_, connection)| connection);
        connection.is_some_and(|connection| connection.is_handshaking() && connection.side() == Side::Client)
    }

    /// Returns the number of octets that may be written now. 0-RTT data fill at most half of the first congestion
    /// window: quinn-proto needs room in the window for the end of its handshake, and has no timer for lost 0-RTT
    /// data.
    fn room(&self) -> usize {
        let early = (self.config.initial_window.0 / 2) as usize;
        if self.sends_early() { early.saturating_sub(self.outgoing.early_octets) } else { usize::MAX }
    }

    /// Adds a message to those that wait until they can be written.
    pub(crate) fn queue(&mut self, message: Message) {
        let stream = match self.mapping {
            MessageMapping::Streams => self.outgoing.streams.get(usize::from(message.stream)).copied(),
            MessageMapping::PerMessage | MessageMapping::Datagrams => None,
        };
        self.outgoing.waiting_messages.push_back(WaitingMessage { stream, octets: message.payload });
    }

    /// Writes waiting messages as long as quinn-proto takes them.
    pub(crate) fn write(&mut self) {
        let mut room = self.room();
        let Some((_, connection)) = &mut self.connection else { return };
        while let Some(waiting) = self.outgoing.waiting_messages.front_mut() {
            let length = waiting.octets.len();
            let written = match self.mapping {
                _ if room == 0 => false,
                MessageMapping::Streams => write(connection, waiting, room),
                MessageMapping::PerMessage => write_alone(connection, waiting, room),
                MessageMapping::Datagrams => match write_datagram(connection, waiting) {
                    Err(TooLarge) => {
                        self.reader.push_event(Event::Abandoned { stream: 0 });
                        true
                    }
                    Ok(written) => written,
                },
            };
            let octets = if self.mapping == MessageMapping::Datagrams {
                length
            } else {
                length - waiting.octets.len()
            };
            room = room.saturating_sub(octets);
            self.outgoing.early_octets += octets;
            if !written {
                return;
            }
            self.outgoing.waiting_messages.pop_front();
        }
        self.announce_room();
    }

    /// Returns whether the endpoint accepts another message.
    pub(crate) fn has_room(&self) -> bool {
        self.outgoing.is_open() && !self.closing.requested && self.outgoing.waiting_messages.is_empty()
    }

    /// Tells an application that was blocked that the endpoint accepts messages again.
    fn announce_room(&mut self) {
        if self.has_room() && self.blocked.take() {
            self.reader.push_event(Event::Writable);
        }
    }

    /// Sends the packets that quinn-proto has to send now.
    pub(crate) fn transmit(&mut self, now: Time, is_probing: bool) {
        while self.form.has_room() {
            let Some((_, connection)) = &mut self.connection else { return };
            self.buffer.clear();
            let Some(transmit) = connection.poll_transmit(clock::instant(now), 1, &mut self.buffer) else {
                return;
            };
            let payload = (&self.buffer[..transmit.size], crate::ecn::from_quinn(transmit.ecn));
            if let Some(remote) = self.remote {
                self.form.queue_datagram(now, remote, payload, is_probing, &mut self.statistics);
            }
        }
    }
}

/// Writes at most `room` octets of a message to its stream; returns false if a part of the message remains.
fn write(connection: &mut Connection, waiting: &mut WaitingMessage, room: usize) -> bool {
    let Some(id) = waiting.stream else { return true };
    let mut part = waiting.octets.slice(..room.min(waiting.octets.len()));
    let length = part.len();
    // Streams are never stopped or reset, so a write fails only for lack of room or at the end of the
    // connection.
    let _ = connection.send_stream(id).write_chunks(std::slice::from_mut(&mut part));
    waiting.octets.advance(length - part.len());
    waiting.octets.is_empty()
}

/// Writes a message to a stream of its own, which ends with the message.
fn write_alone(connection: &mut Connection, waiting: &mut WaitingMessage, room: usize) -> bool {
    waiting.stream = waiting.stream.or_else(|| connection.streams().open(Dir::Uni));
    let Some(id) = waiting.stream else { return false };
    let written = write(connection, waiting, room);
    if written {
        connection.send_stream(id).finish().expect("a stream is finished only once");
    }
    written
}

/// The error for a message that does not fit into a packet of the connection.
struct TooLarge;

fn write_datagram(connection: &mut Connection, waiting: &mut WaitingMessage) -> Result<bool, TooLarge> {
    match connection.datagrams().send(waiting.octets.clone(), false) {
        Ok(()) => Ok(true),
        Err(SendDatagramError::Blocked(_)) => Ok(false),
        Err(SendDatagramError::TooLarge) => Err(TooLarge),
        Err(problem) => unreachable!("datagrams were rejected although both ends accept them: {problem}"),
    }
}
