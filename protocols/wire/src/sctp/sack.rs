//! The SACK chunk. RFC 9260 section 3.3.4.

use bytes::{Buf, BufMut, Bytes};
use smallvec::SmallVec;

use super::Tsn;
use crate::ParseError;

/// The SACK chunk: the TSNs that have arrived, and the receiver window.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |   Type = 3    |  Flags = 0    |         Chunk Length          |
/// +---------------+---------------+-------------------------------+
/// |                      Cumulative TSN Ack                       |
/// +---------------------------------------------------------------+
/// |           Advertised Receiver Window Credit (a_rwnd)          |
/// +-------------------------------+-------------------------------+
/// | Number of Gap Ack Blocks = N  |  Number of Duplicate TSNs = M |
/// +-------------------------------+-------------------------------+
/// |    Gap Ack Block #1 Start     |     Gap Ack Block #1 End      |
/// +-------------------------------+-------------------------------+
/// |                       Duplicate TSN 1                         |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sack {
    /// Cumulative TSN ack: every TSN up to this one has arrived.
    pub cumulative_tsn: Tsn,
    /// Advertised receiver window credit in octets.
    pub a_rwnd: u32,
    /// TSNs that have arrived beyond the cumulative TSN, in ascending order.
    pub gaps: SmallVec<[GapAckBlock; 4]>,
    /// TSNs that arrived more than once since the last SACK.
    pub duplicates: SmallVec<[Tsn; 2]>,
}

/// A run of TSNs that have arrived, as offsets from the cumulative TSN, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapAckBlock {
    /// Offset of the first TSN.
    pub start: u16,
    /// Offset of the last TSN.
    pub end: u16,
}

impl Sack {
    /// Length in octets of the fixed part, without gap ack blocks and duplicates.
    pub const FIXED_OCTETS: usize = 16;

    /// Returns the length of the chunk on the wire in octets.
    pub fn length(&self) -> usize {
        Self::FIXED_OCTETS + 4 * (self.gaps.len() + self.duplicates.len())
    }

    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        out.put_u32(self.cumulative_tsn.0);
        out.put_u32(self.a_rwnd);
        out.put_u16(self.gaps.len() as u16);
        out.put_u16(self.duplicates.len() as u16);
        for GapAckBlock { start, end } in &self.gaps {
            out.put_u16(*start);
            out.put_u16(*end);
        }
        for tsn in &self.duplicates {
            out.put_u32(tsn.0);
        }
    }

    pub(super) fn parse_value(mut value: Bytes) -> Result<Self, ParseError> {
        let (cumulative_tsn, a_rwnd) = (Tsn(value.try_get_u32()?), value.try_get_u32()?);
        let (gaps, duplicates) = (usize::from(value.try_get_u16()?), usize::from(value.try_get_u16()?));
        if value.len() != 4 * (gaps + duplicates) {
            return Err(ParseError::Length);
        }
        Ok(Self {
            cumulative_tsn,
            a_rwnd,
            gaps: (0..gaps).map(|_| GapAckBlock { start: value.get_u16(), end: value.get_u16() }).collect(),
            duplicates: (0..duplicates).map(|_| Tsn(value.get_u32())).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;
    use smallvec::smallvec;

    #[rustfmt::skip]
    const OCTETS: [u8; 28] = [
        3, 0, 0, 28,
        0, 0, 0, 10,
        0, 1, 0, 0,
        0, 2, 0, 1,
        0, 2, 0, 3,
        0, 5, 0, 5,
        0, 0, 0, 9,
    ];

    /// RFC 9260 section 3.3.4 by hand: TSNs 12, 13 and 15 have arrived beyond 10, and 9 arrived twice.
    #[test]
    fn gap_ack_blocks_come_before_duplicates() {
        let sack = Sack {
            cumulative_tsn: Tsn(10),
            a_rwnd: 65536,
            gaps: smallvec![GapAckBlock { start: 2, end: 3 }, GapAckBlock { start: 5, end: 5 }],
            duplicates: smallvec![Tsn(9)],
        };
        Chunk::Sack(sack).assert_octets(&OCTETS);
    }

    #[test]
    fn block_and_duplicate_counts_must_match_the_chunk_length() {
        for (at, wrong) in [(13, 1), (13, 3), (15, 0), (15, 2)] {
            let mut octets = OCTETS;
            octets[at] = wrong;
            let parsed = Chunk::parse(&mut octets.to_vec().into());
            assert_eq!(parsed, Err(ParseError::Length), "octet {at} = {wrong}");
        }
    }
}
