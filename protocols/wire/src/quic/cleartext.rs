//! Unprotected packets, coalesced into datagrams. RFC 9000 sections 12.2 and 17.

use super::varint::{skip, take};
use super::{CONNECTION_ID_OCTETS, Frames};
use crate::ParseError;

/// An unencrypted QUIC packet, as endpoints of the model world (the simulator) send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleartextPacket<'a> {
    /// The packet number space, which determines the keys of the packet.
    pub space: PacketNumberSpace,
    /// Whether it is a 0-RTT packet. 0-RTT packets share the packet numbers of 1-RTT packets, but have a long
    /// header and keys of their own. RFC 9000 section 17.2.3.
    pub is_zero_rtt: bool,
    /// The packet number and the key generation, which the tag contains in place of the authentication data.
    pub number: PacketNumber,
    /// Offset of the packet number in the packet.
    pub(super) number_at: usize,
    /// Length of the header in octets, including the packet number.
    pub(super) header: usize,
    /// The whole packet: header, frames and tag.
    pub(super) octets: &'a [u8],
}

/// Packet number spaces. RFC 9000 section 12.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketNumberSpace {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT packets, and 1-RTT packets (with a short header).
    Data,
}

/// The complete packet number and key generation, which an unencrypted packet contains in place of the AEAD's tag.
/// A receiver can derive them from earlier packets, but someone who reads a single packet cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketNumber {
    /// The complete packet number; the header contains its last octets. RFC 9000 section 17.1.
    pub number: u64,
    /// The number of key updates so far; the header contains its last bit. RFC 9001 section 6.
    pub generation: u64,
}

impl PacketNumber {
    /// Length of a tag in octets. RFC 9001 section 5.3.
    pub const TAG_OCTETS: usize = 16;

    /// Encodes the packet number and the key generation as a tag.
    pub fn to_tag(self) -> [u8; Self::TAG_OCTETS] {
        (u128::from(self.number) << 64 | u128::from(self.generation)).to_be_bytes()
    }

    /// Decodes the packet number and the key generation from a tag.
    pub fn from_tag(tag: [u8; Self::TAG_OCTETS]) -> Self {
        let both = u128::from_be_bytes(tag);
        Self { number: (both >> 64) as u64, generation: both as u64 }
    }
}

impl<'a> CleartextPacket<'a> {
    /// Returns the frames of the packet.
    pub fn frames(&self) -> Frames<'a> {
        Frames::new(&self.octets[self.header..self.octets.len() - PacketNumber::TAG_OCTETS])
    }

    /// Returns the length of the packet in octets, including its header and tag.
    pub const fn length(&self) -> usize {
        self.octets.len()
    }

    /// Removes the first packet from the front of a datagram and returns it. The fixed bit may have any value (RFC
    /// 9287).
    fn take(datagram: &mut &'a [u8]) -> Result<Self, ParseError> {
        let (level, number_at, length) = extent(datagram)?;
        let header = number_at + 1 + usize::from(datagram[0] & 3);
        if length < header + PacketNumber::TAG_OCTETS {
            return Err(ParseError::Length);
        }
        let octets = datagram.split_off(..length).ok_or(ParseError::Truncated)?;
        let tag = octets.last_chunk().ok_or(ParseError::Truncated)?;
        let is_zero_rtt = level == EncryptionLevel::ZeroRtt;
        Ok(Self {
            space: level.space(),
            is_zero_rtt,
            number: PacketNumber::from_tag(*tag),
            number_at,
            header,
            octets,
        })
    }

    /// Returns the encryption level, which determines the keys of the packet.
    pub(super) const fn level(&self) -> EncryptionLevel {
        match self.space {
            PacketNumberSpace::Initial => EncryptionLevel::Initial,
            PacketNumberSpace::Handshake => EncryptionLevel::Handshake,
            PacketNumberSpace::Data if self.is_zero_rtt => EncryptionLevel::ZeroRtt,
            PacketNumberSpace::Data => EncryptionLevel::OneRtt,
        }
    }
}

/// Encryption levels: the kinds of packets that have keys of their own. RFC 9001 section 2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EncryptionLevel {
    Initial,
    ZeroRtt,
    Handshake,
    OneRtt,
}

impl EncryptionLevel {
    /// Returns the packet number space of the encryption level. RFC 9000 section 12.3.
    pub(super) const fn space(self) -> PacketNumberSpace {
        match self {
            Self::Initial => PacketNumberSpace::Initial,
            Self::Handshake => PacketNumberSpace::Handshake,
            Self::ZeroRtt | Self::OneRtt => PacketNumberSpace::Data,
        }
    }
}

/// The bit of the first octet that indicates a long header. RFC 9000 section 17.2.
pub(super) const LONG_HEADER_BIT: u8 = 0x80;

/// Returns the encryption level of the first packet of a datagram, the offset of its packet number, and its
/// length. Header protection does not mask the octets that contain these values.
pub(super) fn extent(datagram: &[u8]) -> Result<(EncryptionLevel, usize, usize), ParseError> {
    let first = *datagram.first().ok_or(ParseError::Truncated)?;
    if first & LONG_HEADER_BIT == 0 {
        return Ok(parse_short_header(datagram));
    }
    parse_long_header(first, datagram)
}

/// Parses a short header. Returns the encryption level, the offset of the packet number, and the length of the
/// packet, which ends with the datagram. RFC 9000 section 17.3.1.
fn parse_short_header(datagram: &[u8]) -> (EncryptionLevel, usize, usize) {
    (EncryptionLevel::OneRtt, 1 + CONNECTION_ID_OCTETS, datagram.len())
}

/// Parses a long header of version 1. Returns the encryption level, the offset of the packet number, and the
/// length of the packet. RFC 9000 section 17.2.
fn parse_long_header(first: u8, datagram: &[u8]) -> Result<(EncryptionLevel, usize, usize), ParseError> {
    let mut rest = &datagram[1..];
    if skip(&mut rest, 4)? != [0, 0, 0, 1] {
        return Err(ParseError::Value);
    }
    for _connection_id in ["destination", "source"] {
        let length = skip(&mut rest, 1)?[0];
        skip(&mut rest, length.into())?;
    }
    let level = match first >> 4 & 3 {
        0 => EncryptionLevel::Initial,
        1 => EncryptionLevel::ZeroRtt,
        2 => EncryptionLevel::Handshake,
        _ => return Err(ParseError::Value),
    };
    if level == EncryptionLevel::Initial {
        let token = take(&mut rest)?;
        skip(&mut rest, token)?;
    }
    let length = usize::try_from(take(&mut rest)?).map_err(|_| ParseError::Length)?;
    let number_at = datagram.len() - rest.len();
    Ok((level, number_at, number_at.checked_add(length).ok_or(ParseError::Length)?))
}

/// Returns the packets of a datagram. At the first malformed packet, returns an error and ends.
pub fn packets(mut datagram: &[u8]) -> impl Iterator<Item = Result<CleartextPacket<'_>, ParseError>> {
    std::iter::from_fn(move || {
        if datagram.is_empty() {
            return None;
        }
        let packet = CleartextPacket::take(&mut datagram);
        if packet.is_err() {
            datagram = &[];
        }
        Some(packet)
    })
}
