//! Messages onto streams, and packets out. RFC 9000 sections 2.2 and 13.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Event, Message};
use hol_wire::quic::{Carried, Datagram, Frame, packets};
use hol_wire::{Packet, Stamp};
use quinn_proto::{Connection, Dir, SendDatagramError, StreamId};
use smallvec::SmallVec;

use crate::{Carriage, Endpoint, clock};

/// Streams to the peer, and what they have not taken.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Its end says that no more is sent.
    pub(crate) control: Option<StreamId>,
    /// By stream of the contract.
    pub(crate) streams: Vec<StreamId>,
    /// What waits for room; while something does, no more is taken.
    pub(crate) held: VecDeque<Held>,
}

/// A message, or what is left of it.
#[derive(Debug)]
pub(crate) struct Held {
    /// Its stream, if it has one already.
    stream: Option<StreamId>,
    octets: Bytes,
}

impl Outgoing {
    /// The connection is open.
    pub(crate) fn is_open(&self) -> bool {
        self.control.is_some()
    }
}

impl Endpoint {
    /// The connection is open: so are the streams that stay.
    pub(crate) fn open_streams(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        let streams = if self.carriage == Carriage::Streams { self.config.streams } else { 0 };
        let mut open = || connection.streams().open(Dir::Uni).expect("a configuration is checked first");
        self.outgoing.control = Some(open());
        self.outgoing.streams = (0..streams).map(|_| open()).collect();
    }

    pub(crate) fn send(&mut self, message: Message) {
        let stream = match self.carriage {
            Carriage::Streams => self.outgoing.streams.get(usize::from(message.stream)).copied(),
            Carriage::PerMessage | Carriage::Datagrams => None,
        };
        self.outgoing.held.push_back(Held { stream, octets: message.payload });
        self.write();
    }

    /// What waits for room goes as far as there is some.
    pub(crate) fn write(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        while let Some(held) = self.outgoing.held.front_mut() {
            let written = match self.carriage {
                Carriage::Streams => write(connection, held),
                Carriage::PerMessage => write_alone(connection, held),
                Carriage::Datagrams => match write_datagram(connection, held) {
                    Err(TooLarge) => {
                        self.reader.tell(Event::Abandoned { stream: 0 });
                        true
                    }
                    Ok(written) => written,
                },
            };
            if !written {
                return;
            }
            self.outgoing.held.pop_front();
        }
        self.announce_room();
    }

    /// Whether another message is taken.
    pub(crate) fn has_room(&self) -> bool {
        self.outgoing.is_open() && !self.closing.asked && self.outgoing.held.is_empty()
    }

    /// Tells an application that was refused that there is room again.
    fn announce_room(&mut self) {
        if self.has_room() && self.blocked.take() {
            self.reader.tell(Event::Writable);
        }
    }

    /// Sends what quinn-proto has to send now.
    pub(crate) fn transmit(&mut self, now: Time, is_probing: bool) {
        loop {
            let Some((_, connection)) = &mut self.connection else { return };
            self.buffer.clear();
            let Some(transmit) = connection.poll_transmit(clock::instant(now), 1, &mut self.buffer) else {
                return;
            };
            let payload = Bytes::copy_from_slice(&self.buffer[..transmit.size]);
            self.transmit_datagram(now, payload, is_probing);
        }
    }

    fn transmit_datagram(&mut self, now: Time, payload: Bytes, is_probing: bool) {
        let (Some((destination, destination_port)), Some(secrets)) = (self.remote, self.secrets) else {
            return;
        };
        let carried = self.stamp(now, &payload, is_probing);
        let (source, source_port) = self.local;
        let datagram = Datagram { source_port, destination_port, payload, secrets, carried };
        self.statistics.packets_sent += 1;
        self.packets.push_back(Packet::new(source, destination, datagram));
    }

    /// When the user data in these packets was sent.
    fn stamp(&mut self, now: Time, payload: &[u8], is_probing: bool) -> SmallVec<[Carried; 2]> {
        let frames = packets(payload).flat_map(|packet| packet.expect("quinn-proto wrote it").frames());
        let (mut carried, mut asks) = (SmallVec::new(), false);
        for frame in frames {
            match frame.expect("quinn-proto wrote it") {
                Frame::Stream { id, offset: start, length, .. } => {
                    let end = start + length;
                    let (first_sent, is_new) = self.first_sent.send(now, id, start, end);
                    let statistics = &mut self.statistics;
                    match (is_new, self.last_probe > Some(first_sent)) {
                        (true, _) => statistics.data_sent += 1,
                        (false, true) => statistics.timeout_retransmissions += 1,
                        (false, false) => statistics.fast_retransmissions += 1,
                    }
                    let stamp = Stamp { first_sent, sent: now };
                    carried.push(Carried { stream: Some(id), start, end, stamp });
                }
                Frame::Datagram(end) => {
                    self.statistics.data_sent += 1;
                    let stamp = Stamp { first_sent: now, sent: now };
                    carried.push(Carried { stream: None, start: 0, end, stamp });
                }
                Frame::Ping | Frame::ImmediateAck | Frame::Crypto { .. } => asks = true,
                _ => {}
            }
        }
        if is_probing && asks && self.last_probe < Some(now) {
            self.last_probe = Some(now);
            self.statistics.timeouts += 1;
        }
        carried
    }
}

/// Writes to its stream; false if there is no room for all of it.
fn write(connection: &mut Connection, held: &mut Held) -> bool {
    let Some(id) = held.stream else { return true };
    // Nobody stops or resets a stream: a failure to write is a lack of room, or the end of the connection.
    let _ = connection.send_stream(id).write_chunks(std::slice::from_mut(&mut held.octets));
    held.octets.is_empty()
}

/// The same on a stream of its own, which ends with it.
fn write_alone(connection: &mut Connection, held: &mut Held) -> bool {
    held.stream = held.stream.or_else(|| connection.streams().open(Dir::Uni));
    let Some(id) = held.stream else { return false };
    let written = write(connection, held);
    if written {
        connection.send_stream(id).finish().expect("a stream ends once");
    }
    written
}

/// A message that no packet of the connection has room for.
struct TooLarge;

fn write_datagram(connection: &mut Connection, held: &mut Held) -> Result<bool, TooLarge> {
    match connection.datagrams().send(held.octets.clone(), false) {
        Ok(()) => Ok(true),
        Err(SendDatagramError::Blocked(_)) => Ok(false),
        Err(SendDatagramError::TooLarge) => Err(TooLarge),
        Err(problem) => unreachable!("both ends take datagrams: {problem}"),
    }
}
