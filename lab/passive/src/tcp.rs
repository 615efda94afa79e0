//! Assigns TCP segments to connections, and their octets to positions. RFC 9293, and RFC 8684 for MPTCP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use bytes::Bytes;
use hol_base::Time;
use hol_wire::tcp::{Flags, Segment, SeqNum};
use smallvec::{SmallVec, smallvec};

use crate::connection::{Connection, Piece, Protocol};
use crate::mptcp::{Mappings, MptcpConnections};
use crate::packets_in_flight::PacketContent;
use crate::sequence_positions::SequencePositions;

/// All subflows: TCP connections, and parts of MPTCP connections.
#[derive(Debug, Default)]
pub(crate) struct Subflows {
    /// The index of the latest subflow between two sockets; the first socket is that of the host that opened it.
    by_sockets: BTreeMap<(SocketAddr, SocketAddr), usize>,
    subflows: Vec<Subflow>,
    sessions: MptcpConnections,
}

/// A TCP connection, or a subflow of an MPTCP connection.
#[derive(Debug)]
struct Subflow {
    connection: usize,
    /// 1 if the subflow was opened by the side that did not open the MPTCP connection, otherwise 0.
    opener_side: usize,
    /// The two sides; side 0 opened the subflow.
    sides: [Side; 2],
    is_reset: bool,
}

/// The data that one side has sent.
#[derive(Debug, Default)]
struct Side {
    /// The positions of sequence numbers; the octet after the SYN has position 0.
    positions: SequencePositions,
    mappings: Mappings,
    /// Whether SYN and FIN have been sent.
    sent: Flags,
}

/// Octets and their positions in the connection's data.
type Pieces = SmallVec<[(Range<u64>, Bytes); 1]>;

impl Subflows {
    /// Handles a segment sent from one socket to another.
    pub fn handle_sent(
        &mut self,
        sockets: [SocketAddr; 2],
        segment: &Segment,
        now: Time,
        connections: &mut Vec<Connection>,
    ) -> PacketContent {
        let (subflow, side) = self.find(sockets, segment, now, connections);
        let subflow = &mut self.subflows[subflow];
        let (index, direction) = (subflow.connection, side ^ subflow.opener_side);
        let connection = &mut connections[index];
        if segment.flags.contains(Flags::RST) && !std::mem::replace(&mut subflow.is_reset, true) {
            connection.reset();
        }
        let side = &mut subflow.sides[side];
        let place = side.position_of(segment);
        let option = segment.options.mptcp.as_deref();
        let data_fin = option.is_some_and(|option| {
            self.sessions.handle_option(option, index, direction, connection, place, &mut side.mappings)
        });
        if option.is_none() && !segment.payload.is_empty() {
            // RFC 8684 section 3.7: first data without the option means plain TCP.
            connection.set_protocol(Protocol::Tcp);
        }
        let is_mptcp = connection.protocol == Protocol::Mptcp;
        let pieces = if is_mptcp {
            side.mappings.connection_data(place, &segment.payload)
        } else {
            plain(place, segment)
        };
        let mut content = PacketContent {
            connection: index,
            direction,
            ranges: smallvec![],
            closes: if is_mptcp { data_fin } else { segment.flags.contains(Flags::FIN) },
            repeated: 0,
        };
        let mut repeats = side.repeats(segment.flags);
        for (range, octets) in pieces {
            repeats |= connection.handle_sent(direction, range.clone(), now, |part| {
                let cut = (part.start - range.start) as usize..(part.end - range.start) as usize;
                Piece { stream: Some(0), payload: octets.slice(cut) }
            });
            content.ranges.push(range);
        }
        content.repeated = repeats.into();
        content
    }

    /// Returns the subflow of a segment, and the side that sent it.
    fn find(
        &mut self,
        [from, to]: [SocketAddr; 2],
        segment: &Segment,
        now: Time,
        connections: &mut Vec<Connection>,
    ) -> (usize, usize) {
        let forth = self.by_sockets.get(&(from, to)).map(|subflow| (*subflow, 0));
        let known = forth.or_else(|| self.by_sockets.get(&(to, from)).map(|subflow| (*subflow, 1)));
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        match known {
            Some((subflow, side)) if !opens || self.subflows[subflow].sides[side].may_begin(segment.seq) => {
                (subflow, side)
            }
            _ => {
                // RFC 9293 section 3.4.1: the sockets may be reused.
                self.by_sockets.remove(&(to, from));
                self.by_sockets.insert((from, to), self.subflows.len());
                self.subflows.push(self.open(segment, now, connections));
                (self.subflows.len() - 1, 0)
            }
        }
    }

    /// Opens a subflow: a further one of its MPTCP connection, or the first of a new connection.
    fn open(&self, segment: &Segment, now: Time, connections: &mut Vec<Connection>) -> Subflow {
        let joined =
            segment.options.mptcp.as_deref().and_then(|option| self.sessions.joined_connection(option));
        let (connection, opener_side) = joined.unwrap_or((connections.len(), 0));
        match joined {
            Some(_) => connections[connection].add_subflow(),
            None => connections.push(Connection::new(Protocol::Tcp, now)),
        }
        Subflow { connection, opener_side, sides: Default::default(), is_reset: false }
    }
}

impl Side {
    /// Returns whether a SYN with this sequence number can belong to this subflow: this side has sent no SYN yet, or this is a
    /// retransmission of it.
    fn may_begin(&self, seq: SeqNum) -> bool {
        self.positions.origin().is_none_or(|origin| origin == seq.next().0)
    }

    /// Returns the position of the segment's first octet; a SYN comes before it. RFC 9293 section 3.4.
    fn position_of(&mut self, segment: &Segment) -> i64 {
        let syn = u32::from(segment.flags.contains(Flags::SYN));
        if syn == 1 {
            self.positions.set_origin(segment.seq.next().0);
        }
        self.positions.position((segment.seq + syn).0)
    }

    /// Returns whether the SYN or FIN is a retransmission.
    fn repeats(&mut self, flags: Flags) -> bool {
        let marks = Flags(flags.0 & (Flags::SYN | Flags::FIN).0);
        let repeated = self.sent.0 & marks.0 != 0;
        self.sent = self.sent | marks;
        repeated
    }
}

/// Returns the payload of a plain TCP segment by its position. Data before the first position is a probe: RFC 9293
/// section 3.8.4.
fn plain(place: i64, segment: &Segment) -> Pieces {
    let before = usize::try_from(-place.min(0)).unwrap_or(usize::MAX);
    let octets = segment.payload.slice(before.min(segment.payload.len())..);
    if octets.is_empty() {
        return Pieces::new();
    }
    let begin = place.max(0) as u64;
    smallvec![(begin..begin + octets.len() as u64, octets)]
}
