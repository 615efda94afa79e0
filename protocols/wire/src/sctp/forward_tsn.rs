//! The FORWARD TSN chunk. RFC 3758 section 3.2.

use bytes::{Buf, BufMut, Bytes};
use smallvec::SmallVec;

use super::{Ssn, Tsn};
use crate::ParseError;

/// FORWARD TSN: data that the sender has abandoned. RFC 3758 section 3.2.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Type = 192   |  Flags = 0    |         Chunk Length          |
/// +---------------+---------------+-------------------------------+
/// |                      New Cumulative TSN                       |
/// +-------------------------------+-------------------------------+
/// |           Stream-1            |       Stream Sequence-1       |
/// +-------------------------------+-------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardTsn {
    /// The new cumulative TSN: the receiver must treat all TSNs up to this one as received.
    pub new_cumulative_tsn: Tsn,
    /// For each ordered stream with skipped messages, the largest stream sequence number that is
    /// skipped.
    pub skipped: SmallVec<[(u16, Ssn); 2]>,
}

impl ForwardTsn {
    /// The chunk type of FORWARD TSN.
    pub const KIND: u8 = 192;
    /// Length in octets of the entry of a skipped stream.
    pub const ENTRY_OCTETS: usize = 4;

    pub(super) fn value_length(&self) -> usize {
        4 + Self::ENTRY_OCTETS * self.skipped.len()
    }

    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        out.put_u32(self.new_cumulative_tsn.0);
        for (stream, ssn) in &self.skipped {
            out.put_u16(*stream);
            out.put_u16(ssn.0);
        }
    }

    pub(super) fn parse_value(mut value: Bytes) -> Result<Self, ParseError> {
        let new_cumulative_tsn = Tsn(value.try_get_u32()?);
        let mut skipped = SmallVec::new();
        while value.has_remaining() {
            skipped.push((value.try_get_u16()?, Ssn(value.try_get_u16()?)));
        }
        Ok(Self { new_cumulative_tsn, skipped })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;
    use smallvec::smallvec;

    /// RFC 3758 section 3.2 by hand.
    #[test]
    fn skipped_streams_follow_the_new_cumulative_tsn() {
        let forward = ForwardTsn { new_cumulative_tsn: Tsn(258), skipped: smallvec![(3, Ssn(4))] };
        let octets = [192, 0, 0, 12, 0, 0, 1, 2, 0, 3, 0, 4];
        Chunk::ForwardTsn(Box::new(forward)).assert_octets(&octets);
    }

    #[test]
    fn half_a_stream_entry_is_refused() {
        let value = Bytes::from_static(&[0, 0, 1, 2, 0, 3]);
        assert_eq!(ForwardTsn::parse_value(value), Err(ParseError::Truncated));
    }
}
