//! One UDP datagram. RFC 768.

use std::fmt;

use bytes::{Buf, BufMut, Bytes};

use crate::checksum::InternetChecksum;
use crate::{Address, ParseError, SendTimes, Transport};

/// One UDP datagram.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |          Source Port          |       Destination Port        |
/// +-------------------------------+-------------------------------+
/// |            Length             |           Checksum            |
/// +-------------------------------+-------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// User data.
    pub payload: Bytes,
    /// When the payload was sent; for measurement only, not on the wire.
    pub stamp: SendTimes,
}

impl Datagram {
    /// Length of the header in octets.
    pub const HEADER_LENGTH: usize = 8;

    /// Returns the length of header and payload in octets.
    pub fn length(&self) -> usize {
        Self::HEADER_LENGTH + self.payload.len()
    }

    /// Appends the datagram with its checksum.
    ///
    /// # Panics
    /// If the datagram is too long for its length field.
    pub(crate) fn emit(&self, source: Address, destination: Address, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u16(self.source_port);
        out.put_u16(self.destination_port);
        out.put_u16(u16::try_from(self.length()).expect("a datagram is at most 65535 octets"));
        out.put_u16(0);
        out.put_slice(&self.payload);
        // Zero on the wire means that there is no checksum.
        let checksum = match checksum(source, destination, &out[start..]) {
            0 => 0xffff,
            sum => sum,
        };
        out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Parses a datagram; one without a checksum is accepted only over IPv4. RFC 8200 section 8.1.
    pub fn parse(mut octets: Bytes, source: Address, destination: Address) -> Result<Self, ParseError> {
        let (total, is_intact) = (octets.len(), checksum(source, destination, &octets) == 0);
        let (source_port, destination_port) = (octets.try_get_u16()?, octets.try_get_u16()?);
        let (length, sum) = (usize::from(octets.try_get_u16()?), octets.try_get_u16()?);
        if length != total {
            return Err(if length < Self::HEADER_LENGTH {
                ParseError::Length
            } else {
                ParseError::Truncated
            });
        }
        if !is_intact && (sum != 0 || source.is_ipv6()) {
            return Err(ParseError::Checksum);
        }
        Ok(Self { source_port, destination_port, payload: octets, stamp: SendTimes::default() })
    }
}

/// Returns the checksum over the pseudo header and the datagram; zero if the datagram contains a correct
/// checksum.
fn checksum(source: Address, destination: Address, datagram: &[u8]) -> u16 {
    InternetChecksum::default()
        .add_pseudo_header(source, destination, Transport::UDP, datagram.len())
        .add(datagram)
        .finish()
}

impl fmt::Display for Datagram {
    /// Formats the datagram as tcpdump does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UDP, length {}", self.payload.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Address = crate::ipv4(10, 0, 0, 1);
    const DESTINATION: Address = crate::ipv4(10, 0, 0, 2);

    /// RFC 768 by hand. Pseudo header 0a00 0001 0a00 0002 0011 000b, header 9c40 13c4 000b and payload 6162 6300
    /// sum to 18890, which folds to 8891; the complement is 776e.
    const OCTETS: [u8; 11] = [0x9c, 0x40, 0x13, 0xc4, 0, 11, 0x77, 0x6e, b'a', b'b', b'c'];

    fn datagram() -> Datagram {
        let payload = Bytes::from_static(b"abc");
        Datagram { source_port: 40000, destination_port: 5060, payload, stamp: SendTimes::default() }
    }

    fn parse(octets: &[u8]) -> Result<Datagram, ParseError> {
        Datagram::parse(Bytes::copy_from_slice(octets), SOURCE, DESTINATION)
    }

    #[test]
    fn a_datagram_is_laid_out_as_rfc_768_draws_it() {
        let mut out = Vec::new();
        datagram().emit(SOURCE, DESTINATION, &mut out);
        assert_eq!(out, OCTETS);
        assert_eq!(parse(&OCTETS), Ok(datagram()));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..OCTETS.len() * 8 {
            let mut octets = OCTETS;
            octets[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&octets).is_err(), "bit {bit}");
        }
    }

    /// RFC 768: a checksum of zero means that the sender computed none.
    #[test]
    fn datagram_without_a_checksum_is_accepted() {
        let mut octets = OCTETS;
        octets[6..8].fill(0);
        assert_eq!(parse(&octets), Ok(datagram()));
        octets[5] = 12;
        assert_eq!(parse(&octets), Err(ParseError::Truncated));
        octets[5] = 7;
        assert_eq!(parse(&octets), Err(ParseError::Length));
    }
}
