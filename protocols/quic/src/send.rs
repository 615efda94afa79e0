//! Writes messages to streams, and sends packets. RFC 9000 sections 2.2 and 13.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Event, Message};
use quinn_proto::{Connection, Dir, SendDatagramError, StreamId};

use crate::packet_form::PacketForm;
use crate::{Endpoint, MessageMapping, clock};

/// The streams to the peer, and messages that wait for room.
#[derive(Debug, Default)]
pub(crate) struct OutgoingStreams {
    /// The control stream, whose end means that no more data follow.
    pub(crate) control: Option<StreamId>,
    /// The QUIC stream of each stream of the application.
    pub(crate) streams: Vec<StreamId>,
    /// Messages that wait for room. While any message waits, no new messages are accepted.
    pub(crate) waiting_messages: VecDeque<WaitingMessage>,
}

/// A message, or the unsent part of a message, that waits for room.
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

    /// Queues a message and writes as much as the streams take.
    pub(crate) fn send(&mut self, message: Message) {
        let stream = match self.mapping {
            MessageMapping::Streams => self.outgoing.streams.get(usize::from(message.stream)).copied(),
            MessageMapping::PerMessage | MessageMapping::Datagrams => None,
        };
        self.outgoing.waiting_messages.push_back(WaitingMessage { stream, octets: message.payload });
        self.write();
    }

    /// Writes waiting messages while there is room.
    pub(crate) fn write(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        while let Some(waiting) = self.outgoing.waiting_messages.front_mut() {
            let written = match self.mapping {
                MessageMapping::Streams => write(connection, waiting),
                MessageMapping::PerMessage => write_alone(connection, waiting),
                MessageMapping::Datagrams => match write_datagram(connection, waiting) {
                    Err(TooLarge) => {
                        self.reader.push_event(Event::Abandoned { stream: 0 });
                        true
                    }
                    Ok(written) => written,
                },
            };
            if !written {
                return;
            }
            self.outgoing.waiting_messages.pop_front();
        }
        self.announce_room();
    }

    /// Returns whether another message is accepted.
    pub(crate) fn has_room(&self) -> bool {
        self.outgoing.is_open() && !self.closing.requested && self.outgoing.waiting_messages.is_empty()
    }

    /// Informs a blocked application that there is room again.
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

/// Writes a message to its stream; returns false if there is no room for all of it.
fn write(connection: &mut Connection, waiting: &mut WaitingMessage) -> bool {
    let Some(id) = waiting.stream else { return true };
    // Streams are never stopped or reset, so a write fails only for lack of room or at the end of the
    // connection.
    let _ = connection.send_stream(id).write_chunks(std::slice::from_mut(&mut waiting.octets));
    waiting.octets.is_empty()
}

/// Writes a message to its own stream, which ends with the message.
fn write_alone(connection: &mut Connection, waiting: &mut WaitingMessage) -> bool {
    waiting.stream = waiting.stream.or_else(|| connection.streams().open(Dir::Uni));
    let Some(id) = waiting.stream else { return false };
    let written = write(connection, waiting);
    if written {
        connection.send_stream(id).finish().expect("a stream is finished only once");
    }
    written
}

/// A message that is too large for a packet of the connection.
struct TooLarge;

fn write_datagram(connection: &mut Connection, waiting: &mut WaitingMessage) -> Result<bool, TooLarge> {
    match connection.datagrams().send(waiting.octets.clone(), false) {
        Ok(()) => Ok(true),
        Err(SendDatagramError::Blocked(_)) => Ok(false),
        Err(SendDatagramError::TooLarge) => Err(TooLarge),
        Err(problem) => unreachable!("datagrams were rejected although both ends accept them: {problem}"),
    }
}
