//! One TCP segment. RFC 9293 section 3.1.

use std::fmt;

use bytes::{Buf, BufMut, Bytes};
use hol_base::serial_number;

use super::Options;
use crate::checksum::InternetChecksum;
use crate::{Address, ParseError, SendTimes, Transport};

serial_number!(
    /// A sequence number of a connection's byte stream. RFC 9293 section 3.4.
    SeqNum, u32, i32
);

/// One TCP segment.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------------------------------+-------------------------------+
/// |          Source Port          |       Destination Port        |
/// +-------------------------------+-------------------------------+
/// |                        Sequence Number                        |
/// +---------------------------------------------------------------+
/// |                    Acknowledgment Number                      |
/// +-------+-------+---------------+-------------------------------+
/// | Offset|Reservd|  control bits |            Window             |
/// +-------+-------+---------------+-------------------------------+
/// |           Checksum            |         Urgent Pointer        |
/// +-------------------------------+-------------------------------+
/// |                           [Options]                           |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first octet of the payload; if there is no payload, of the SYN or FIN.
    pub seq: SeqNum,
    /// Next sequence number expected; has a meaning only with [`Flags::ACK`].
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// The window field as it is on the wire, before scaling. RFC 7323 section 2.2.
    pub window: u16,
    /// TCP options.
    pub options: Options,
    /// User data.
    pub payload: Bytes,
    /// When the last octet of the payload was sent; for measurement only, not on the wire.
    pub stamp: SendTimes,
}

/// The control bits (flags) of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// FIN: the sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// SYN: synchronizes the sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// RST: resets the connection.
    pub const RST: Self = Self(0x04);
    /// PSH: asks the receiver to deliver the data at once.
    pub const PSH: Self = Self(0x08);
    /// ACK: the acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// ECE (ECN-Echo): a marked packet has arrived. RFC 3168 section 6.1.
    pub const ECE: Self = Self(0x40);
    /// CWR (congestion window reduced): the sender has reacted to ECE. RFC 3168 section 6.1.
    pub const CWR: Self = Self(0x80);
    /// AE (accurate ECN): together with CWR and ECE it is a counter of marked packets, the ACE field. RFC 9768
    /// section 3.2.2.
    pub const AE: Self = Self(0x100);

    /// Returns the flags without the bits of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether every bit of `other` is set in these flags.
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

impl Segment {
    /// Length of the header without options in octets.
    pub const HEADER_LENGTH: usize = 20;

    /// Returns the length of header, options and payload in octets.
    pub fn length(&self) -> usize {
        Self::HEADER_LENGTH + self.options.length() + self.payload.len()
    }

    /// Returns SEG.LEN: the number of sequence numbers that the segment occupies, including SYN and FIN. RFC 9293
    /// section 3.4.
    pub fn sequence_length(&self) -> u32 {
        let syn = u32::from(self.flags.contains(Flags::SYN));
        let fin = u32::from(self.flags.contains(Flags::FIN));
        self.payload.len() as u32 + syn + fin
    }

    /// Returns the segment's octets with their checksum, which also covers the addresses.
    ///
    /// # Panics
    /// If the options are longer than [`Options::MAX_OCTETS`].
    pub fn to_bytes(&self, source: Address, destination: Address) -> Bytes {
        let mut out = Vec::with_capacity(self.length());
        self.emit(source, destination, &mut out);
        out.into()
    }

    /// Appends the segment with its checksum.
    pub(crate) fn emit(&self, source: Address, destination: Address, out: &mut Vec<u8>) {
        let start = out.len();
        let options_length = self.options.length();
        assert!(
            options_length <= Options::MAX_OCTETS,
            "{options_length} octets of options: {:?}",
            self.options
        );
        out.put_u16(self.source_port);
        out.put_u16(self.destination_port);
        out.put_u32(self.seq.0);
        out.put_u32(self.ack.0);
        let words = (Self::HEADER_LENGTH + options_length) as u16 / 4;
        out.put_u16(words << 12 | self.flags.0);
        out.put_u16(self.window);
        out.put_u32(0);
        self.options.emit(out);
        out.put_slice(&self.payload);
        let checksum = checksum(source, destination, &out[start..]);
        out[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Parses a segment, ignoring unsupported options and the urgent pointer.
    pub fn parse(mut octets: Bytes, source: Address, destination: Address) -> Result<Self, ParseError> {
        if checksum(source, destination, &octets) != 0 {
            return Err(ParseError::Checksum);
        }
        let (source_port, destination_port) = (octets.try_get_u16()?, octets.try_get_u16()?);
        let (seq, ack) = (SeqNum(octets.try_get_u32()?), SeqNum(octets.try_get_u32()?));
        let offset_and_flags = octets.try_get_u16()?;
        let header_length = usize::from(offset_and_flags >> 12) * 4;
        let flags = Flags(offset_and_flags & 0x1ff);
        let window = octets.try_get_u16()?;
        let _checksum_and_urgent_pointer = octets.try_get_u32()?;
        let options_length = header_length.checked_sub(Self::HEADER_LENGTH).ok_or(ParseError::Length)?;
        if octets.len() < options_length {
            return Err(ParseError::Truncated);
        }
        let options = Options::parse(octets.split_to(options_length), flags.contains(Flags::SYN))?;
        let (payload, stamp) = (octets, SendTimes::default());
        Ok(Self { source_port, destination_port, seq, ack, flags, window, options, payload, stamp })
    }
}

/// Returns the checksum over the pseudo header and the segment; zero if the segment contains a correct checksum.
/// RFC 9293 section 3.1.
fn checksum(source: Address, destination: Address, segment: &[u8]) -> u16 {
    InternetChecksum::default()
        .add_pseudo_header(source, destination, Transport::TCP, segment.len())
        .add(segment)
        .finish()
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LETTERS: [(Flags, &str); 8] = [
            (Flags::FIN, "F"),
            (Flags::SYN, "S"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ACK, "."),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
            (Flags::AE, "e"),
        ];
        LETTERS
            .iter()
            .filter(|(flag, _)| self.contains(*flag))
            .try_for_each(|(_, letter)| f.write_str(letter))
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags [{}], seq {}", self.flags, self.seq)?;
        if !self.payload.is_empty() {
            write!(f, ":{}", self.seq + self.payload.len() as u32)?;
        }
        if self.flags.contains(Flags::ACK) {
            write!(f, ", ack {}", self.ack)?;
        }
        write!(f, ", win {}", self.window)?;
        if self.options.length() > 0 {
            write!(f, ", options {}", self.options)?;
        }
        write!(f, ", length {}", self.payload.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Address = crate::ipv4(10, 0, 0, 1);
    const DESTINATION: Address = crate::ipv4(10, 0, 0, 2);

    fn segment() -> Segment {
        Segment {
            source_port: 40000,
            destination_port: 7626,
            seq: SeqNum(0x0102_0304),
            ack: SeqNum(0x0506_0708),
            flags: Flags::PSH | Flags::ACK,
            window: 502,
            options: Options::default(),
            payload: Bytes::from_static(b"abc"),
            stamp: SendTimes::default(),
        }
    }

    /// RFC 9293 section 3.1 by hand. Pseudo header 0a00 0001 0a00 0002 0006 0017, header 9c40 1dca 0102 0304
    /// 0506 0708 5018 01f6 and payload 6162 6300 sum to 1f4ae, which folds to f4af; the complement is 0b50.
    const OCTETS: [u8; 23] = [
        0x9c, 0x40, 0x1d, 0xca, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0x01, 0xf6, 0x0b, 0x50, 0, 0, b'a', b'b',
        b'c',
    ];

    #[test]
    fn a_segment_is_laid_out_as_rfc_9293_draws_it() {
        assert_eq!(segment().to_bytes(SOURCE, DESTINATION), OCTETS[..]);
        assert_eq!(Segment::parse(Bytes::from_static(&OCTETS), SOURCE, DESTINATION), Ok(segment()));
    }

    /// RFC 9293 section 3.1: the pseudo header protects against misdelivery.
    #[test]
    fn every_flipped_bit_and_every_other_address_is_noticed() {
        for bit in 0..OCTETS.len() * 8 {
            let mut octets = OCTETS;
            octets[bit / 8] ^= 1 << (bit % 8);
            let parsed = Segment::parse(octets.to_vec().into(), SOURCE, DESTINATION);
            assert_eq!(parsed, Err(ParseError::Checksum), "bit {bit}");
        }
        let elsewhere = crate::ipv4(10, 0, 0, 3);
        let parsed = Segment::parse(Bytes::from_static(&OCTETS), SOURCE, elsewhere);
        assert_eq!(parsed, Err(ParseError::Checksum));
    }

    /// RFC 9293 section 3.1: the data offset is at least five words and lies inside the segment.
    #[test]
    fn a_data_offset_beyond_the_segment_is_refused() {
        let with_offset = |words: u8| {
            let mut octets = OCTETS.to_vec();
            octets[12] = words << 4;
            octets[16..18].fill(0);
            let checksum = checksum(SOURCE, DESTINATION, &octets);
            octets[16..18].copy_from_slice(&checksum.to_be_bytes());
            Segment::parse(octets.into(), SOURCE, DESTINATION)
        };
        assert_eq!(with_offset(4), Err(ParseError::Length));
        assert_eq!(with_offset(6), Err(ParseError::Truncated));
    }

    #[test]
    fn a_segment_prints_as_tcpdump_prints_it() {
        let expected = "Flags [P.], seq 16909060:16909063, ack 84281096, win 502, length 3";
        assert_eq!(segment().to_string(), expected);
    }
}
