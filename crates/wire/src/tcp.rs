//! The TCP header and its options. RFC 9293 section 3.1, RFC 2018, RFC 7323.

use bytes::Bytes;
use hol_base::serial_number;
use smallvec::SmallVec;

use crate::Stamp;

serial_number!(
    /// A sequence number of a connection's byte stream. RFC 9293 section 3.4.
    SeqNum, u32, i32
);

/// One TCP segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first payload octet (of the SYN or FIN if it has none).
    pub seq: SeqNum,
    /// Next sequence number expected; meaningful only with [`Flags::ACK`].
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// The window field as on the wire, before scaling. RFC 7323 section 2.2.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// User data.
    pub payload: Bytes,
    /// When the last octet of the payload was sent; not on the wire.
    pub stamp: Stamp,
}

/// The control bits of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push function.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);

    /// True if every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The options that this stack speaks. Absent ones take no room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Maximum segment size, SYN only. RFC 9293 section 3.7.1.
    pub mss: Option<u16>,
    /// Window scale shift, SYN only. RFC 7323 section 2.
    pub window_scale: Option<u8>,
    /// SACK permitted, SYN only. RFC 2018 section 2.
    pub sack_permitted: bool,
    /// Timestamps. RFC 7323 section 3.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks, at most 4 (3 beside timestamps); the first may be a D-SACK. RFC 2018, RFC 2883.
    pub sack: SmallVec<[SackBlock; 4]>,
}

/// The timestamps option. RFC 7323 section 3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval, the sender's clock.
    pub value: u32,
    /// TSecr, the echo of the peer's clock.
    pub echo: u32,
}

/// A block of received data: `left` is its first octet, `right` the one just behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: SeqNum,
    /// Sequence number just behind the block.
    pub right: SeqNum,
}

impl Options {
    /// Octets on the wire, padded to a multiple of four as Linux lays them out.
    pub fn length(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let window_scale = if self.window_scale.is_some() { 4 } else { 0 };
        // SACK permitted fits into the padding before the timestamps.
        let (timestamps, sack_permitted) = match (self.timestamps.is_some(), self.sack_permitted) {
            (true, _) => (12, 0),
            (false, permitted) => (0, if permitted { 4 } else { 0 }),
        };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() };
        mss + window_scale + timestamps + sack_permitted + sack
    }
}

impl Segment {
    /// Octets of the header without options.
    pub const HEADER: usize = 20;

    /// Header, options and payload in octets.
    pub fn length(&self) -> usize {
        Self::HEADER + self.options.length() + self.payload.len()
    }

    /// SEG.LEN: the sequence numbers that the segment takes, SYN and FIN counted. RFC 9293 section 3.4.
    pub fn sequence_length(&self) -> u32 {
        let syn = u32::from(self.flags.contains(Flags::SYN));
        let fin = u32::from(self.flags.contains(Flags::FIN));
        self.payload.len() as u32 + syn + fin
    }
}
