//! The IPv4 header. RFC 791 section 3.1, RFC 3168 section 5.

use std::net::Ipv4Addr;

use bytes::{Buf, BufMut, Bytes};

use crate::checksum::InternetChecksum;
use crate::{Ecn, ParseError};

/// An IPv4 header without options.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------+-------+---------------+-------------------------------+
/// |Version|  IHL  |   DSCP    |ECN|          Total Length         |
/// +-------+-------+---------------+-----+-------------------------+
/// |         Identification        |Flags|      Fragment Offset    |
/// +---------------+---------------+-----+-------------------------+
/// |  Time to Live |    Protocol   |         Header Checksum       |
/// +---------------+---------------+-------------------------------+
/// |                       Source Address                          |
/// +---------------------------------------------------------------+
/// |                    Destination Address                        |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4Header {
    /// ECN codepoint. The DSCP, the six bits before it, is zero.
    pub ecn: Ecn,
    /// Length of the packet in octets, including the header.
    pub total_length: u16,
    /// Identifies the fragments of a packet; has no meaning if DF is set.
    pub identification: u16,
    /// Time to live, in hops.
    pub ttl: u8,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

/// Value of the first octet: version 4, and an IHL of five 32-bit words.
const VERSION_AND_IHL: u8 = 0x45;
const DONT_FRAGMENT: u16 = 0x4000;
/// Bits that are set only in fragments: More Fragments, and the fragment offset.
const FRAGMENT_BITS: u16 = 0x3fff;

impl Ipv4Header {
    /// Length in octets of a header without options.
    pub const LENGTH: usize = 20;
    /// The time to live of packets that our endpoints send.
    pub const TTL: u8 = 64;

    /// Appends the header, with DF set and its checksum.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u8(VERSION_AND_IHL);
        out.put_u8(self.ecn.bits());
        out.put_u16(self.total_length);
        out.put_u16(self.identification);
        out.put_u16(DONT_FRAGMENT);
        out.put_u8(self.ttl);
        out.put_u8(self.protocol);
        out.put_u16(0);
        out.put_u32(self.source.to_bits());
        out.put_u32(self.destination.to_bits());
        let checksum = InternetChecksum::default().add(&out[start..]).finish();
        out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Removes the header and its options from a packet, and everything after its total length.
    pub(crate) fn parse(packet: &mut Bytes) -> Result<Self, ParseError> {
        let first = *packet.first().ok_or(ParseError::Truncated)?;
        if first >> 4 != 4 {
            return Err(ParseError::Version(first >> 4));
        }
        let header_length = usize::from(first & 0x0f) * 4;
        if header_length < Self::LENGTH {
            return Err(ParseError::Length);
        }
        if packet.len() < header_length {
            return Err(ParseError::Truncated);
        }
        let mut octets = packet.split_to(header_length);
        if InternetChecksum::default().add(&octets).finish() != 0 {
            return Err(ParseError::Checksum);
        }
        octets.advance(1);
        let ecn = Ecn::from_bits(octets.get_u8());
        let total_length = octets.get_u16();
        let identification = octets.get_u16();
        if octets.get_u16() & FRAGMENT_BITS != 0 {
            return Err(ParseError::Fragment);
        }
        let (ttl, protocol) = (octets.get_u8(), octets.get_u8());
        octets.advance(2);
        let (source, destination) = (octets.get_u32().into(), octets.get_u32().into());
        let payload = usize::from(total_length).checked_sub(header_length).ok_or(ParseError::Length)?;
        if payload > packet.len() {
            return Err(ParseError::Truncated);
        }
        packet.truncate(payload);
        Ok(Self { ecn, total_length, identification, ttl, protocol, source, destination })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 octets header and 40 octets payload from 192.0.2.1 to 198.51.100.7, laid out by hand from
    /// RFC 791 section 3.1. The words 4500 003c 0000 4000 4006 c000 0201 c633 6407 sum to 2b17d,
    /// which folds to b17f, and its complement is 4e80.
    const HEADER: [u8; 20] = [
        0x45, 0x00, 0x00, 0x3c, 0x00, 0x00, 0x40, 0x00, 0x40, 0x06, 0x4e, 0x80, 192, 0, 2, 1, 198, 51, 100, 7,
    ];

    fn header() -> Ipv4Header {
        Ipv4Header {
            ecn: Ecn::NotCapable,
            total_length: 60,
            identification: 0,
            ttl: 64,
            protocol: 6,
            source: [192, 0, 2, 1].into(),
            destination: [198, 51, 100, 7].into(),
        }
    }

    fn packet(change: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        let mut octets = [&HEADER[..], &[0; 40]].concat();
        change(&mut octets);
        octets[10..12].fill(0);
        let header_length = usize::from(octets[0] & 0x0f) * 4;
        let checksum = InternetChecksum::default().add(&octets[..header_length]).finish();
        octets[10..12].copy_from_slice(&checksum.to_be_bytes());
        octets.into()
    }

    #[test]
    fn the_header_is_laid_out_as_rfc_791_draws_it() {
        let mut out = Vec::new();
        header().emit(&mut out);
        assert_eq!(out, HEADER);
        let mut octets = packet(|_| ());
        assert_eq!(Ipv4Header::parse(&mut octets), Ok(header()));
        assert_eq!(octets.len(), 40);
    }

    /// RFC 3168 section 5: bits 6 and 7 of the second octet.
    #[test]
    fn ecn_codepoint_is_in_the_last_two_bits_of_the_second_octet() {
        let mut octets = packet(|octets| octets[1] = 0xb8 | 3);
        assert_eq!(Ipv4Header::parse(&mut octets).map(|header| header.ecn), Ok(Ecn::Congested));
        let mut out = Vec::new();
        Ipv4Header { ecn: Ecn::Capable, ..header() }.emit(&mut out);
        assert_eq!(out[1], 2);
    }

    /// RFC 791 section 3.1: IHL includes options, and total length may be less than the link has delivered.
    #[test]
    fn options_and_link_padding_are_removed() {
        let mut octets = packet(|octets| {
            octets[0] = 0x46;
            octets.extend([0; 6]);
        });
        assert_eq!(Ipv4Header::parse(&mut octets), Ok(header()));
        assert_eq!(octets.len(), 36);
    }

    #[test]
    fn broken_headers_are_refused() {
        let parse = |change: fn(&mut Vec<u8>)| Ipv4Header::parse(&mut packet(change)).unwrap_err();
        assert_eq!(parse(|o| o[0] = 0x65), ParseError::Version(6));
        assert_eq!(parse(|o| o[6] = 0x20), ParseError::Fragment);
        assert_eq!(parse(|o| o[3] = 19), ParseError::Length);
        assert_eq!(parse(|o| o[3] = 61), ParseError::Truncated);
        let mut corrupted = HEADER;
        corrupted[15] ^= 1;
        assert_eq!(Ipv4Header::parse(&mut corrupted.to_vec().into()), Err(ParseError::Checksum));
        let short_header = [&[0x44][..], &[0; 30]].concat();
        assert_eq!(Ipv4Header::parse(&mut short_header.into()), Err(ParseError::Length));
        assert_eq!(Ipv4Header::parse(&mut Bytes::from_static(&HEADER[..19])), Err(ParseError::Truncated));
    }
}
