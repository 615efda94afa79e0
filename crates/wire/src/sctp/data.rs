//! The DATA chunk. RFC 9260 section 3.3.1.

use bytes::Bytes;
use hol_base::serial_number;

use crate::Stamp;

serial_number!(
    /// Transmission sequence number: one for each DATA chunk. RFC 9260 section 1.6.
    Tsn, u32, i32
);
serial_number!(
    /// Stream sequence number: one for each ordered message of a stream. RFC 9260 section 6.5.
    Ssn, u16, i16
);

/// User data, or a fragment of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// B, E, U and I bits.
    pub flags: DataFlags,
    /// Transmission sequence number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: u16,
    /// Stream sequence number; meaningless for unordered data.
    pub ssn: Ssn,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// User data; never empty on the wire.
    pub payload: Bytes,
    /// When the payload was sent; not on the wire.
    pub stamp: Stamp,
}

/// The flag bits of a DATA chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataFlags(pub u8);

impl DataFlags {
    /// E: last fragment of a message.
    pub const END: Self = Self(0x01);
    /// B: first fragment of a message.
    pub const BEGIN: Self = Self(0x02);
    /// U: unordered.
    pub const UNORDERED: Self = Self(0x04);
    /// I: the receiver acknowledges at once. RFC 7053.
    pub const IMMEDIATE: Self = Self(0x08);

    /// True if every bit of `other` is set.
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
    /// Octets of the chunk before the user data.
    pub const HEADER: usize = 16;

    /// Octets on the wire, padding included.
    pub fn length(&self) -> usize {
        Self::HEADER + self.payload.len().next_multiple_of(4)
    }
}
