//! A connection reconstructed from packets, and the messages on its streams.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use hol_base::Time;
use hol_measure::{Outcome, Record, RecordKind, TransferTimes};

use crate::delivery_history::{Arrival, DeliveryHistory};
use crate::http::{HttpExchanges, Transaction};
use crate::packets_in_flight::{PacketContent, SentPacket};
use crate::reassembly::Reassembly;
use crate::timetable::Timetable;
use crate::totals::TransportTotals;

/// A TCP or MPTCP connection, an SCTP association, or a pair of UDP sockets. Direction 0 is from the host
/// that opened it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub protocol: Protocol,
    pub carried: TransportTotals,
    histories: [DeliveryHistory; 2],
    /// The data of each direction that wait for earlier data.
    pieces: [Reassembly<Piece>; 2],
    /// The streams by identifier; TCP and MPTCP use stream 0.
    streams: BTreeMap<u16, Stream>,
    /// The times of the first and the last packet.
    span: [Time; 2],
    /// Whether all data of each direction has arrived, including its end.
    closed: [bool; 2],
    /// Whether the host that did not open the connection has sent a packet.
    is_answered: bool,
    /// The number of subflows that were not reset.
    subflows: u32,
    is_refused: bool,
}

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Mptcp,
    Sctp,
    Udp,
}

/// A part of the data of a stream.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Stream of the data; `None` for unordered messages, which have no position in a stream.
    pub stream: Option<u16>,
    pub payload: Bytes,
}

/// A stream of a connection.
#[derive(Debug, Default)]
struct Stream {
    exchange: HttpExchanges,
    /// For each direction, the position in the stream at which each SCTP chunk ends, and the index of the chunk among
    /// all chunks.
    chunks: [Vec<(u64, u64)>; 2],
}

impl Connection {
    /// Creates a connection whose first packet is sent now.
    pub fn new(protocol: Protocol, now: Time) -> Self {
        Self {
            protocol,
            carried: TransportTotals { connections: 1, ..TransportTotals::default() },
            histories: Default::default(),
            pieces: Default::default(),
            streams: BTreeMap::new(),
            span: [now, now],
            closed: [false; 2],
            is_answered: false,
            subflows: 1,
            is_refused: false,
        }
    }

    /// Handles the transmission of a range of a direction's sequence space; `piece` extracts the data that are sent for
    /// the first time. Returns whether any part of the range is a retransmission.
    pub fn handle_sent(
        &mut self,
        direction: usize,
        range: Range<u64>,
        now: Time,
        piece: impl Fn(Range<u64>) -> Piece,
    ) -> bool {
        let length = range.end - range.start;
        let fresh = self.histories[direction].handle_sent(range, now);
        let mut left = length;
        for part in fresh {
            left -= part.end - part.start;
            let piece = piece(part.clone());
            self.carried.octets[direction] += piece.payload.len() as u64;
            self.pieces[direction].insert(part, piece);
        }
        self.read(direction);
        left > 0
    }

    /// Passes the data that is now in order to the HTTP reader.
    fn read(&mut self, direction: usize) {
        while let Some((place, Piece { stream, payload })) = self.pieces[direction].pop() {
            let Some(id) = stream else { continue };
            let stream = self.streams.entry(id).or_default();
            stream.exchange.read(direction, &payload);
            if self.protocol == Protocol::Sctp {
                let chunks = &mut stream.chunks[direction];
                let end = chunks.last().map_or(0, |(end, _)| *end) + payload.len() as u64;
                chunks.push((end, place));
            }
        }
    }

    /// Handles the arrival of a packet.
    pub fn handle_arrival(&mut self, packet: SentPacket, now: Time) {
        let PacketContent { direction, ranges, closes, .. } = packet.content;
        for range in ranges {
            self.histories[direction].handle_arrival(range, Arrival { sent: packet.sent, at: now });
        }
        self.closed[direction] |= closes;
    }

    /// Notes that a packet of the connection was seen in `direction` now.
    pub fn update_times(&mut self, direction: usize, now: Time) {
        self.span[1] = now;
        self.is_answered |= direction == 1;
    }

    /// Adds a subflow to the connection. RFC 8684 section 3.2.
    pub fn add_subflow(&mut self) {
        self.subflows += 1;
    }

    /// Handles a reset of the connection or a subflow, or an abort of the association. RFC 9293 section
    /// 3.5.3, RFC 8684 section 3.6, RFC 9260 section 9.1.
    pub fn reset(&mut self) {
        self.subflows = self.subflows.saturating_sub(1);
        self.is_refused |= self.subflows == 0 && self.closed != [true; 2];
    }

    /// Sets whether the connection is TCP or MPTCP, which its first data determines. RFC 8684 section 3.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        if self.carried.octets == [0; 2] {
            self.protocol = protocol;
        }
    }

    /// Returns the record of the connection, then the records of its transactions. `number` is the index of the
    /// connection among all connections. Ids and parents are not set yet.
    pub fn records(mut self, number: usize) -> Vec<Record> {
        for direction in (0..2).filter(|direction| self.is_whole(*direction)).collect::<Vec<_>>() {
            self.streams.values_mut().for_each(|stream| stream.exchange.close(direction));
        }
        let mut records = vec![self.record(number)];
        for (id, stream) in &self.streams {
            let number = if self.protocol == Protocol::Sctp { *id } else { records[0].stream };
            records.extend(self.transactions(number, stream));
        }
        records
    }

    /// Returns whether everything that a side sent was captured, including its end.
    fn is_whole(&self, direction: usize) -> bool {
        self.closed[direction] && self.pieces[direction].is_whole()
    }

    /// Returns the connection's record. A connection has no request and reply: the record lasts from its first packet to its last.
    fn record(&self, number: usize) -> Record {
        let leg = |at| {
            Some(TransferTimes { written: at, first_sent: at, last_sent: at, arrived: at, delivered: at })
        };
        let [first, last] = self.span;
        let octets = self.carried.octets[0] + self.carried.octets[1];
        Record {
            id: 0,
            kind: RecordKind::Connection,
            parent: None,
            stream: number.try_into().unwrap_or(u16::MAX),
            size: octets.try_into().unwrap_or(u32::MAX),
            reply_size: 0,
            scheduled: first,
            request: leg(first),
            reply: leg(last),
            outcome: self.outcome(),
        }
    }

    /// Returns the outcome of the connection. A reset connection counts as refused. A connection that was closed in
    /// order is completed, and so is one that stays open after everything has arrived, since a program may use it again
    /// later. UDP has no end and cannot fail.
    fn outcome(&self) -> Outcome {
        let is_closed = self.closed == [true; 2] || self.protocol == Protocol::Udp;
        let is_idle = self.is_answered && self.histories.iter().all(DeliveryHistory::has_all_arrived);
        match (self.is_refused, is_closed || is_idle) {
            (true, _) => Outcome::Refused,
            (false, true) => Outcome::Completed,
            (false, false) => Outcome::Unfinished,
        }
    }

    fn transactions(&self, number: u16, stream: &Stream) -> Vec<Record> {
        let transactions = stream.exchange.transactions();
        if transactions.is_empty() {
            return Vec::new();
        }
        let tables = [0, 1].map(|direction| self.timetable(direction, stream));
        transactions.iter().filter_map(|transaction| record(number, transaction, &tables)).collect()
    }

    fn timetable(&self, direction: usize, stream: &Stream) -> Timetable {
        let (sent, arrived) = (self.histories[direction].sent(), self.histories[direction].arrived());
        if self.protocol != Protocol::Sctp {
            return Timetable::new(sent.leading_run(), arrived.leading_run());
        }
        // Chunks of a stream have their TSNs in the order of their SSNs and fragments: RFC 9260 section 6.9.
        let chunks = &stream.chunks[direction];
        let sent = chunks.iter().map_while(|(end, place)| Some((*end, sent.value_at(*place)?)));
        let arrived = chunks.iter().map_while(|(end, place)| Some((*end, arrived.value_at(*place)?)));
        Timetable::new(sent, arrived)
    }
}

/// Returns the record of a transaction; `None` if its request was not captured when it was sent.
fn record(stream: u16, transaction: &Transaction, [requests, replies]: &[Timetable; 2]) -> Option<Record> {
    let Transaction { begin, request_end: end, reply_end, refused } = *transaction;
    let request = end.and_then(|end| requests.transfer_times(end));
    let reply = reply_end.and_then(|end| replies.transfer_times(end));
    let reply = request.zip(reply).map(|(request, reply)| not_before(reply, request.delivered));
    let first = requests.first_sent(begin)?;
    Some(Record {
        id: 0,
        kind: RecordKind::Transaction,
        parent: None,
        stream,
        size: (end.unwrap_or(begin) - begin).try_into().unwrap_or(u32::MAX),
        reply_size: 0,
        scheduled: request.map_or(first, |request| first.min(request.first_sent)),
        request,
        reply,
        outcome: match (reply, refused) {
            (None, _) => Outcome::Unfinished,
            (Some(_), true) => Outcome::Refused,
            (Some(_), false) => Outcome::Completed,
        },
    })
}

/// Returns the times of a reply that start no earlier than at `earliest`. A reply that was sent before its whole request had arrived (RFC
/// 9112 section 9.3) starts at that arrival, so that no time counts twice.
fn not_before(leg: TransferTimes, earliest: Time) -> TransferTimes {
    let TransferTimes { written, first_sent, last_sent, arrived, delivered } = leg;
    let [written, first_sent, last_sent, arrived, delivered] =
        [written, first_sent, last_sent, arrived, delivered].map(|time| time.max(earliest));
    TransferTimes { written, first_sent, last_sent, arrived, delivered }
}
