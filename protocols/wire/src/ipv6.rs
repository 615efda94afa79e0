//! The IPv6 header. RFC 8200 section 3.

use std::net::Ipv6Addr;

use bytes::{Buf, BufMut, Bytes};

use crate::{Ecn, ParseError};

/// An IPv6 header followed by the transport's.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------+-----------+---+---------------------------------------+
/// |Version|   DSCP    |ECN|              Flow Label               |
/// +-------+-----------+---+-------+---------------+---------------+
/// |        Payload Length         |  Next Header  |   Hop Limit   |
/// +-------------------------------+---------------+---------------+
/// |                    Source Address, 16 octets                  |
/// +---------------------------------------------------------------+
/// |                 Destination Address, 16 octets                |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6Header {
    /// ECN codepoint. The DSCP before it, and the flow label after it, are zero.
    pub ecn: Ecn,
    /// Number of octets after the header.
    pub payload_length: u16,
    /// Protocol number of the payload.
    pub next_header: u8,
    /// Hop limit, the equivalent of IPv4's time to live.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

/// Value of Next Header for a Fragment header. RFC 8200 section 4.5.
const FRAGMENT_HEADER: u8 = 44;

impl Ipv6Header {
    /// Length of the header in octets.
    pub const LENGTH: usize = 40;
    /// The hop limit of packets that our endpoints send.
    pub const HOP_LIMIT: u8 = 64;

    /// Appends the encoded header.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(6 << 28 | u32::from(self.ecn.bits()) << 20);
        out.put_u16(self.payload_length);
        out.put_u8(self.next_header);
        out.put_u8(self.hop_limit);
        out.put_slice(&self.source.octets());
        out.put_slice(&self.destination.octets());
    }

    /// Removes the header from a packet, and everything after its payload.
    pub(crate) fn parse(packet: &mut Bytes) -> Result<Self, ParseError> {
        let first = packet.try_get_u32()?;
        if first >> 28 != 6 {
            return Err(ParseError::Version((first >> 28) as u8));
        }
        let payload_length = packet.try_get_u16()?;
        let (next_header, hop_limit) = (packet.try_get_u8()?, packet.try_get_u8()?);
        if next_header == FRAGMENT_HEADER {
            return Err(ParseError::Fragment);
        }
        let (source, destination) = (packet.try_get_u128()?.into(), packet.try_get_u128()?.into());
        if usize::from(payload_length) > packet.len() {
            return Err(ParseError::Truncated);
        }
        packet.truncate(payload_length.into());
        let ecn = Ecn::from_bits((first >> 20) as u8);
        Ok(Self { ecn, payload_length, next_header, hop_limit, source, destination })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Laid out by hand from RFC 8200 section 3: 40 octets of TCP from 2001:db8::1 to 2001:db8::2, marked.
    #[rustfmt::skip]
    const HEADER: [u8; 40] = [
        0x60, 0x30, 0, 0, 0, 40, 6, 64,
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
    ];

    fn header() -> Ipv6Header {
        Ipv6Header {
            ecn: Ecn::Congested,
            payload_length: 40,
            next_header: 6,
            hop_limit: 64,
            source: "2001:db8::1".parse().unwrap(),
            destination: "2001:db8::2".parse().unwrap(),
        }
    }

    #[test]
    fn the_header_is_laid_out_as_rfc_8200_draws_it() {
        let mut out = Vec::new();
        header().emit(&mut out);
        assert_eq!(out, HEADER);
        let mut octets = [&HEADER[..], &[0; 46]].concat().into();
        assert_eq!(Ipv6Header::parse(&mut octets), Ok(header()));
        assert_eq!(octets.len(), 40, "padding of the link is taken off");
    }

    #[test]
    fn broken_headers_are_refused() {
        let parse = |at: usize, octet: u8| {
            let mut octets = [&HEADER[..], &[0; 40]].concat();
            octets[at] = octet;
            Ipv6Header::parse(&mut octets.into()).unwrap_err()
        };
        assert_eq!(parse(0, 0x45), ParseError::Version(4));
        assert_eq!(parse(6, FRAGMENT_HEADER), ParseError::Fragment);
        assert_eq!(parse(5, 41), ParseError::Truncated);
        assert_eq!(Ipv6Header::parse(&mut Bytes::from_static(&HEADER[..39])), Err(ParseError::Truncated));
    }
}
