//! Assigns subflows to MPTCP connections, and the subflows' octets to positions in the data. RFC 8684.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use hol_wire::tcp::{DataSeq, Mapping, Mptcp};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

use crate::connection::{Connection, Protocol};
use crate::spans::Spans;

/// All MPTCP connections, by number.
#[derive(Debug, Default)]
pub(crate) struct MptcpConnections {
    /// By token: the index of the connection, and the direction in which the side with this token sends.
    tokens: BTreeMap<u32, (usize, usize)>,
    /// For each connection, the positions of the data in each direction.
    data_positions: BTreeMap<usize, [DataPositions; 2]>,
}

/// The positions of data sequence numbers: the first octet has position 0.
#[derive(Debug, Default)]
struct DataPositions {
    origin: Option<u64>,
    furthest: i64,
}

/// The mappings of a subflow: ranges, each with the offset to the position in the data.
#[derive(Debug, Default)]
pub(crate) struct Mappings(Spans<i64>);

impl MptcpConnections {
    /// Returns the connection that a SYN joins, and the direction of the SYN: 1 if the other end opened the connection,
    /// else 0. RFC 8684 section 3.2.
    pub fn joined_connection(&self, option: &Mptcp) -> Option<(usize, usize)> {
        let Mptcp::Join { token, .. } = option else { return None };
        // The token is the receiver's; the opener of the connection has direction 0.
        self.tokens.get(token).map(|(connection, receiver)| (*connection, 1 - receiver))
    }

    /// Handles an MPTCP option of a segment whose first octet is at offset `place` of its subflow; returns whether it
    /// is a DATA_FIN.
    pub fn handle_option(
        &mut self,
        option: &Mptcp,
        index: usize,
        direction: usize,
        connection: &mut Connection,
        place: i64,
        mappings: &mut Mappings,
    ) -> bool {
        match *option {
            // Section 3.1: the connection is MPTCP when the other side confirms it.
            Mptcp::Capable { sender_key: None, .. } | Mptcp::Join { .. } => false,
            Mptcp::Capable { sender_key, receiver_key, data_length, .. } => {
                connection.set_protocol(Protocol::Mptcp);
                self.store_key(index, direction, sender_key);
                self.store_key(index, 1 - direction, receiver_key);
                // Section 3.1: the data begin with the octet after the SYN.
                data_length.into_iter().for_each(|length| mappings.add(0, 0, length.into()));
                false
            }
            Mptcp::Signal { data_fin, mapping, .. } => {
                connection.set_protocol(Protocol::Mptcp);
                if let Some(mapping) = mapping {
                    self.add_mapping(index, direction, mapping, data_fin, place, mappings);
                }
                data_fin
            }
        }
    }

    /// Stores the key of a side. The token and the initial data sequence number are the first 32 and the last 64 bits
    /// of the key's SHA-256 (RFC 8684 section 3.1); the first octet of data has the number after the initial one
    /// (section 3.3.1).
    fn store_key(&mut self, connection: usize, direction: usize, key: Option<u64>) {
        let places = &mut self.data_positions.entry(connection).or_default()[direction];
        let (Some(key), None) = (key, places.origin) else { return };
        let hash: [u8; 32] = Sha256::digest(key.to_be_bytes()).into();
        let [a, b, c, d, .., s, t, u, v, w, x, y, z] = hash;
        self.tokens.insert(u32::from_be_bytes([a, b, c, d]), (connection, direction));
        places.origin = Some(u64::from_be_bytes([s, t, u, v, w, x, y, z]).wrapping_add(1));
    }

    /// Adds a mapping (RFC 8684 section 3.3.1). A DATA_FIN counts as an octet of the mapping (section 3.3.3).
    fn add_mapping(
        &mut self,
        connection: usize,
        direction: usize,
        mapping: Mapping,
        data_fin: bool,
        place: i64,
        mappings: &mut Mappings,
    ) {
        let Mapping { data, subflow, length } = mapping;
        let data = self.data_positions.entry(connection).or_default()[direction].position(data);
        // The SYN is octet 0 of the subflow, and numbers wrap.
        let wrapped = subflow.wrapping_sub(1).wrapping_sub(place as u32) as i32;
        mappings.add(place + i64::from(wrapped), data, u64::from(length).saturating_sub(data_fin.into()));
    }
}

impl DataPositions {
    /// Returns the position of a data sequence number. A 32-bit number may have several positions; the one nearest to
    /// the highest position so far is chosen (RFC 8684 section 3.3).
    fn position(&mut self, number: DataSeq) -> i64 {
        let place = match (number, self.origin) {
            (DataSeq::Whole(number), origin) => number.wrapping_sub(origin.unwrap_or(number)) as i64,
            (DataSeq::Half(_), None) => 0,
            (DataSeq::Half(number), Some(origin)) => {
                let furthest = (origin as u32).wrapping_add(self.furthest as u32);
                self.furthest.saturating_add((number.wrapping_sub(furthest) as i32).into())
            }
        };
        self.origin.get_or_insert(match number {
            DataSeq::Whole(number) => number,
            DataSeq::Half(number) => number.into(),
        });
        self.furthest = self.furthest.max(place);
        place
    }
}

impl Mappings {
    /// Maps octets of the subflow to the data; octets that are already mapped keep their position (RFC 8684 section
    /// 3.3.1). A new mapping ends where an earlier one starts, so adding it takes only one step.
    fn add(&mut self, subflow: i64, data: i64, length: u64) {
        let begin = u64::try_from(subflow).ok().filter(|_| data >= 0);
        if let Some(room) = begin.and_then(|begin| self.0.leading_gap(begin..begin + length)) {
            self.0.fill(room, data - subflow);
        }
    }

    /// Returns the data of the connection in a payload that begins at `subflow_offset`: each piece with its range of
    /// positions in the data of the connection.
    pub fn connection_data(
        &self,
        subflow_offset: i64,
        payload: &Bytes,
    ) -> SmallVec<[(Range<u64>, Bytes); 1]> {
        let end = subflow_offset.saturating_add(payload.len() as i64).max(0) as u64;
        let begin = subflow_offset.max(0) as u64;
        let cut = |(span, shift): (Range<u64>, i64)| {
            let part = span.start.max(begin)..span.end.min(end);
            let octets =
                (part.start as i64 - subflow_offset) as usize..(part.end as i64 - subflow_offset) as usize;
            let data = |place: u64| (place as i64).saturating_add(shift) as u64;
            (data(part.start)..data(part.end), payload.slice(octets))
        };
        self.0.overlapping(begin..end).map(cut).filter(|(range, _)| range.start < range.end).collect()
    }
}
