//! Receives packets, and reads messages from the streams.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use hol_base::Time;
use hol_transport::{DeliveryTimes, ReceivedData};
use hol_wire::Ecn;
use quinn_proto::{DatagramEvent, Dir, ReadError, StreamId};

use crate::packet_form::PacketForm;
use crate::socket_address::{SocketAddress, socket_address};
use crate::{Endpoint, MessageMapping, clock, ecn};

/// The state of the streams from the peer.
#[derive(Debug)]
pub(crate) struct IncomingStreams {
    /// Whether the application reads. While it does not, quinn-proto buffers the data and the flow-control
    /// windows fill up.
    pub(crate) reads: bool,
    /// Readable streams, in the order in which they became readable.
    readable: Vec<StreamId>,
    /// The data read so far of incomplete messages that have a stream of their own, and when they were sent
    /// and arrived.
    parts: BTreeMap<u64, (BytesMut, DeliveryTimes)>,
}

impl Default for IncomingStreams {
    fn default() -> Self {
        Self { reads: true, readable: Vec::new(), parts: BTreeMap::new() }
    }
}

impl IncomingStreams {
    /// Records that a stream has data to read.
    pub(crate) fn note_readable(&mut self, id: StreamId) {
        if !self.readable.contains(&id) {
            self.readable.push(id);
        }
    }
}

/// Index of the control stream in each direction. When this stream ends, no more data follow.
const CONTROL_STREAM: u64 = 0;

impl<S: PacketForm> Endpoint<S> {
    /// Passes a datagram to quinn-proto; returns whether it belongs to the connection.
    pub(crate) fn accept_datagram(
        &mut self,
        now: Time,
        source: SocketAddress,
        ecn: Ecn,
        octets: BytesMut,
    ) -> bool {
        let remote = *self.remote.get_or_insert(source);
        self.statistics.packets_received += 1;
        self.buffer.clear();
        let (at, ecn) = (clock::instant(now), ecn::to_quinn(ecn));
        match self.quinn.handle(at, socket_address(remote), None, ecn, octets, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = self.quinn.accept(incoming, at, &mut self.buffer, None).ok();
                self.open_early();
            }
            // Packets of other connections are not answered.
            _ => return false,
        }
        true
    }

    /// Accepts the streams that the peer has opened.
    pub(crate) fn accept_streams(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.incoming.note_readable(id);
        }
    }

    /// Reads all readable streams. The control stream comes last, because its end means that no more data
    /// follow.
    pub(crate) fn read(&mut self, now: Time) {
        if !self.incoming.reads || self.incoming.readable.is_empty() {
            return;
        }
        let mut readable = std::mem::take(&mut self.incoming.readable);
        for id in readable.iter().filter(|id| id.index() != CONTROL_STREAM) {
            self.read_stream(now, *id);
        }
        if let Some(control) = readable.iter().find(|id| id.index() == CONTROL_STREAM) {
            self.read_stream(now, *control);
        }
        readable.clear();
        self.incoming.readable = readable;
    }

    fn read_stream(&mut self, now: Time, id: StreamId) {
        let is_over = loop {
            match self.next_chunk(id) {
                Ok(Some((end, octets))) => self.take(now, id, end, octets),
                Ok(None) => break true,
                Err(ReadError::Blocked) => break false,
                Err(ReadError::Reset(_)) => {
                    unreachable!("a stream was reset, but this endpoint's peers never reset streams")
                }
            }
        };
        if is_over {
            self.finish_stream(now, id);
        }
    }

    /// Returns the next octets of a stream, and the offset that follows them; `None` at the end of the
    /// stream.
    fn next_chunk(&mut self, id: StreamId) -> Result<Option<(u64, Bytes)>, ReadError> {
        let Some((_, connection)) = &mut self.connection else { return Err(ReadError::Blocked) };
        let mut stream = connection.recv_stream(id);
        // A closed stream was read to its end and reported.
        let Ok(mut chunks) = stream.read(true) else { return Err(ReadError::Blocked) };
        let chunk = chunks.next(usize::MAX);
        // `transmit` sends the resulting frames.
        let _ = chunks.finalize();
        Ok(chunk?.map(|chunk| (chunk.offset + chunk.bytes.len() as u64, chunk.bytes)))
    }

    /// Delivers octets of a stream to the application, or appends them to an incomplete message.
    fn take(&mut self, now: Time, id: StreamId, end: u64, payload: Bytes) {
        let delivery_times = self.form.read(now, id.into(), end);
        if self.mapping == MessageMapping::Streams {
            let stream = id.index().saturating_sub(1) as u16;
            return self
                .reader
                .receive(now, ReceivedData { stream, unordered: false, ppid: 0, payload, delivery_times });
        }
        let (part, joined) = self.incoming.parts.entry(id.into()).or_default();
        *joined = if part.is_empty() { delivery_times } else { joined.join(delivery_times) };
        part.extend_from_slice(&payload);
    }

    /// Handles the end of a stream.
    fn finish_stream(&mut self, now: Time, id: StreamId) {
        self.form.on_stream_ended(id.into());
        if id.index() == CONTROL_STREAM {
            return self.note_peer_closed();
        }
        if self.mapping == MessageMapping::PerMessage {
            let (part, delivery_times) = self.incoming.parts.remove(&id.into()).unwrap_or_default();
            self.reader.receive(now, ReceivedData::unordered(part.freeze(), delivery_times));
        }
    }
}
