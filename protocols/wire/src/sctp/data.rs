//! The DATA chunk. RFC 9260 section 3.3.1.

use bytes::{Buf, BufMut, Bytes};
use hol_base::serial_number;

use crate::{ParseError, SendTimes};

serial_number!(
    /// Transmission sequence number (TSN): one for each DATA chunk. RFC 9260 section 1.6.
    Tsn, u32, i32
);
serial_number!(
    /// Stream sequence number (SSN): one for each ordered message of a stream. RFC 9260 section
    /// 6.5.
    Ssn, u16, i16
);

/// User data, or a fragment of it.
///
/// ```text
/// +---------------+-------+-+-+-+-+-------------------------------+
/// |   Type = 0    |  Res  |I|U|B|E|         Chunk Length          |
/// +---------------+-------+-+-+-+-+-------------------------------+
/// |                              TSN                              |
/// +-------------------------------+-------------------------------+
/// |       Stream Identifier       |    Stream Sequence Number     |
/// +-------------------------------+-------------------------------+
/// |                 Payload Protocol Identifier                   |
/// +---------------------------------------------------------------+
/// |                           User Data                           |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// The flag bits B, E, U and I.
    pub flags: DataFlags,
    /// Transmission sequence number (TSN).
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: u16,
    /// Stream sequence number; has no meaning for unordered data.
    pub ssn: Ssn,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// User data; never empty on the wire.
    pub payload: Bytes,
    /// When the payload was sent; for measurement only, not on the wire.
    pub stamp: SendTimes,
}

/// The flag bits of a DATA chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataFlags(pub u8);

impl DataFlags {
    /// E: last fragment of a message.
    pub const END: Self = Self(0x01);
    /// B: first fragment of a message.
    pub const BEGIN: Self = Self(0x02);
    /// U: the message is unordered.
    pub const UNORDERED: Self = Self(0x04);
    /// I: the receiver should acknowledge at once. RFC 7053.
    pub const IMMEDIATE: Self = Self(0x08);

    /// Returns whether every bit of `other` is set in these flags.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for DataFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Data {
    /// Length in octets of the chunk before the user data.
    pub const HEADER_LENGTH: usize = 16;

    /// Returns the length of the chunk on the wire in octets, including padding.
    pub fn length(&self) -> usize {
        Self::HEADER_LENGTH + self.payload.len().next_multiple_of(4)
    }

    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        out.put_u32(self.tsn.0);
        out.put_u16(self.stream);
        out.put_u16(self.ssn.0);
        out.put_u32(self.ppid);
        out.put_slice(&self.payload);
    }

    pub(super) fn parse_value(flags: u8, mut value: Bytes) -> Result<Self, ParseError> {
        Ok(Self {
            flags: DataFlags(flags),
            tsn: Tsn(value.try_get_u32()?),
            stream: value.try_get_u16()?,
            ssn: Ssn(value.try_get_u16()?),
            ppid: value.try_get_u32()?,
            payload: value,
            stamp: SendTimes::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;

    /// RFC 9260 section 3.3.1 by hand; the length counts the user data but not its padding.
    #[test]
    fn user_data_follows_sixteen_octets_and_is_padded() {
        let data = Data {
            flags: DataFlags::BEGIN | DataFlags::END | DataFlags::IMMEDIATE,
            tsn: Tsn(0x0102_0304),
            stream: 7,
            ssn: Ssn(8),
            ppid: 15,
            payload: Bytes::from_static(b"hello"),
            stamp: SendTimes::default(),
        };
        #[rustfmt::skip]
        let octets = [
            0, 0x0b, 0, 21,
            1, 2, 3, 4,
            0, 7, 0, 8,
            0, 0, 0, 15,
            b'h', b'e', b'l', b'l', b'o', 0, 0, 0,
        ];
        Chunk::Data(data).assert_octets(&octets);
    }

    /// RFC 9260 section 6.2: a chunk without user data parses, because the receiver must answer it.
    #[test]
    fn a_chunk_without_user_data_is_still_a_chunk() {
        let mut octets = Bytes::from_static(&[0, 3, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let Ok(Chunk::Data(data)) = Chunk::parse(&mut octets) else { panic!("no DATA chunk") };
        assert!(data.payload.is_empty());
        assert_eq!(
            Chunk::parse(&mut Bytes::from_static(&[0, 3, 0, 8, 0, 0, 0, 1])),
            Err(ParseError::Truncated)
        );
    }
}
