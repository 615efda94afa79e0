//! The I-FORWARD-TSN chunk. RFC 8260 section 2.3.1.

use bytes::{Buf, BufMut, Bytes};
use smallvec::SmallVec;

use super::{Mid, Tsn};
use crate::ParseError;

/// The I-FORWARD-TSN chunk: data that the sender has abandoned, including unordered messages.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Type = 194   |  Flags = 0    |         Chunk Length          |
/// +---------------+---------------+-------------------------------+
/// |                      New Cumulative TSN                       |
/// +-------------------------------+-----------------------------+-+
/// |       Stream Identifier       |          Reserved           |U|
/// +-------------------------------+-----------------------------+-+
/// |                      Message Identifier                       |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IForwardTsn {
    /// The new cumulative TSN: the receiver must treat all TSNs up to this one as received.
    pub new_cumulative_tsn: Tsn,
    /// The skipped messages; ordered and unordered messages of a stream have separate entries.
    pub skipped: SmallVec<[SkippedMessages; 2]>,
}

/// The messages of a stream that are skipped, up to one message identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkippedMessages {
    /// Stream identifier.
    pub stream: u16,
    /// Whether the entry is for unordered messages: the U bit.
    pub unordered: bool,
    /// The largest message identifier that is skipped.
    pub mid: Mid,
}

const UNORDERED: u16 = 1;

impl IForwardTsn {
    /// The chunk type of I-FORWARD-TSN.
    pub const KIND: u8 = 194;
    /// Length in octets of one entry.
    pub const ENTRY_OCTETS: usize = 8;

    pub(super) fn value_length(&self) -> usize {
        4 + Self::ENTRY_OCTETS * self.skipped.len()
    }

    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        out.put_u32(self.new_cumulative_tsn.0);
        for SkippedMessages { stream, unordered, mid } in &self.skipped {
            out.put_u16(*stream);
            out.put_u16(if *unordered { UNORDERED } else { 0 });
            out.put_u32(mid.0);
        }
    }

    pub(super) fn parse_value(mut value: Bytes) -> Result<Self, ParseError> {
        let new_cumulative_tsn = Tsn(value.try_get_u32()?);
        let mut skipped = SmallVec::new();
        while value.has_remaining() {
            let (stream, flags) = (value.try_get_u16()?, value.try_get_u16()?);
            let (unordered, mid) = (flags & UNORDERED != 0, Mid(value.try_get_u32()?));
            skipped.push(SkippedMessages { stream, unordered, mid });
        }
        Ok(Self { new_cumulative_tsn, skipped })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;
    use smallvec::smallvec;

    /// RFC 8260 section 2.3.1 by hand.
    #[test]
    fn skipped_messages_follow_the_new_cumulative_tsn() {
        let skipped = smallvec![
            SkippedMessages { stream: 3, unordered: false, mid: Mid(0x0102_0304) },
            SkippedMessages { stream: 3, unordered: true, mid: Mid(5) },
        ];
        let octets = [194, 0, 0, 24, 0, 0, 1, 2, 0, 3, 0, 0, 1, 2, 3, 4, 0, 3, 0, 1, 0, 0, 0, 5];
        Chunk::IForwardTsn(Box::new(IForwardTsn { new_cumulative_tsn: Tsn(258), skipped }))
            .assert_octets(&octets);
    }

    #[test]
    fn half_an_entry_is_refused_and_reserved_bits_are_ignored() {
        let octets = [0, 0, 1, 2, 0, 3, 0xff, 0xfe, 0, 0, 0, 5];
        let whole = IForwardTsn::parse_value(Bytes::copy_from_slice(&octets)).unwrap();
        assert_eq!(whole.skipped[..], [SkippedMessages { stream: 3, unordered: false, mid: Mid(5) }]);
        for length in (0..4).chain(5..12) {
            let value = Bytes::copy_from_slice(&octets[..length]);
            assert_eq!(IForwardTsn::parse_value(value), Err(ParseError::Truncated), "{length}");
        }
    }
}
