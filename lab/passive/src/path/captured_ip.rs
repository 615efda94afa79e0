//! The IP header of a captured packet, which may be cut short.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::parsed_packet::{read_u16, read_u32};

/// An IP packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedIp<'p> {
    /// The captured octets, from the IP header on.
    pub octets: &'p [u8],
    /// The number of octets at the end of the packet that were not captured.
    pub cut: u32,
}

impl<'p> From<&'p [u8]> for CapturedIp<'p> {
    fn from(octets: &'p [u8]) -> Self {
        Self { octets, cut: 0 }
    }
}

impl<'p> From<&'p Vec<u8>> for CapturedIp<'p> {
    fn from(octets: &'p Vec<u8>) -> Self {
        Self { octets, cut: 0 }
    }
}

/// The fields of an IP header, after the extension headers of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpHeader {
    /// The addresses of sender and receiver.
    pub hosts: [IpAddr; 2],
    pub protocol: u8,
    /// Octets of the whole IP packet.
    pub length: u32,
    /// Octets before the payload.
    pub octets: usize,
    pub fragment: Option<Fragment>,
}

/// The position of a fragment in its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub identification: u32,
    /// The position in octets.
    pub offset: u32,
    pub is_last: bool,
}

impl IpHeader {
    /// Parses the header of a packet; `None` if it is not IP, too short, or longer than the packet.
    pub fn parse(packet: CapturedIp<'_>) -> Option<Self> {
        let header = match packet.octets.first()? >> 4 {
            4 => parse_ipv4(packet),
            6 => parse_ipv6(packet),
            _ => None,
        };
        header.filter(|header| header.octets <= header.length as usize)
    }
}

/// The longest packet that Linux leaves to the network card to segment: GSO_MAX_SIZE in include/linux/netdevice.h.
const MAX_OCTETS: u32 = 8 * 65_535;

impl CapturedIp<'_> {
    /// Returns the number of octets that the packet had on the wire; a manipulated file may claim any number.
    fn length(self) -> u32 {
        (self.octets.len() as u32).saturating_add(self.cut).min(MAX_OCTETS)
    }
}

/// Parses an IPv4 header. RFC 791 section 3.1.
fn parse_ipv4(packet: CapturedIp<'_>) -> Option<IpHeader> {
    let ip = packet.octets;
    let address = |at| Some(IpAddr::from(Ipv4Addr::from_bits(read_u32(ip, at)?)));
    // If the network card segments the packet, the length may not be set yet.
    let length = match read_u16(ip, 2)? {
        0 => packet.length(),
        length => length.into(),
    };
    const MORE_FRAGMENTS: u16 = 0x2000;
    let place = read_u16(ip, 6)?;
    let fragment = Fragment {
        identification: read_u16(ip, 4)?.into(),
        offset: u32::from(place & 0x1fff) * 8,
        is_last: place & MORE_FRAGMENTS == 0,
    };
    Some(IpHeader {
        hosts: [address(12)?, address(16)?],
        protocol: *ip.get(9)?,
        length,
        octets: (usize::from(ip[0] & 0x0f) * 4).max(20),
        fragment: Some(fragment).filter(|fragment| !fragment.is_whole()),
    })
}

/// Parses an IPv6 header and its extension headers. RFC 8200 sections 3 and 4, RFC 4302 section 2 for authentication.
fn parse_ipv6(packet: CapturedIp<'_>) -> Option<IpHeader> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    const MOBILITY: u8 = 135;
    let ip = packet.octets;
    let address = |at: usize| {
        let octets: [u8; 16] = ip.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::from(Ipv6Addr::from(octets)))
    };
    let (mut protocol, mut octets, mut fragment) = (*ip.get(6)?, 40, None);
    // A header that was not captured remains the protocol.
    while let Some(extension) = ip.get(octets..octets + 8) {
        let units = usize::from(extension[1]);
        let length = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY => 8 * (units + 1),
            AUTHENTICATION => 4 * (units + 2),
            FRAGMENT => {
                let place = read_u16(extension, 2)?;
                let is_last = place & 1 == 0;
                let here = Fragment {
                    identification: read_u32(extension, 4)?,
                    offset: u32::from(place & 0xfff8),
                    is_last,
                };
                fragment = Some(here).filter(|fragment| !fragment.is_whole());
                8
            }
            _ => break,
        };
        (protocol, octets) = (extension[0], octets + length);
        // The header of another extension may be in the first fragment only.
        if fragment.is_some() {
            break;
        }
    }
    // A jumbogram (RFC 2675), and a packet that the network card segments, have no length.
    let length = match read_u16(ip, 4)? {
        0 => packet.length(),
        length => 40 + u32::from(length),
    };
    Some(IpHeader { hosts: [address(8)?, address(24)?], protocol, length, octets, fragment })
}

impl Fragment {
    /// Returns whether the fragment is a whole packet. RFC 6946 for IPv6.
    const fn is_whole(self) -> bool {
        self.offset == 0 && self.is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv6 header with the next header and the octets after it.
    fn ipv6(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, rest.len() as u8, next, 64];
        packet.extend([[0xfd; 16], [0xfe; 16]].concat());
        [packet, rest.to_vec()].concat()
    }

    #[test]
    fn extension_headers_of_ipv6_are_skipped() {
        for (next, extensions) in [
            (6, vec![]),
            (0, vec![6, 0, 5, 2, 0, 0, 1, 0]),
            (60, vec![6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            (0, [[43, 0, 1, 4, 0, 0, 0, 0], [60, 0, 4, 0, 0, 0, 0, 0], [6, 0, 1, 4, 0, 0, 0, 0]].concat()),
            (51, [vec![6, 1], vec![0; 10]].concat()),
            // RFC 6946: a whole packet with a fragment header.
            (44, vec![6, 0, 0, 0, 0, 0, 0, 7]),
        ] {
            let packet = ipv6(next, &[&extensions[..], &[1; 20]].concat());
            let header = IpHeader::parse((&packet).into()).unwrap();
            assert_eq!((header.protocol, header.fragment), (6, None), "{next}");
            assert_eq!((header.octets, header.length as usize), (40 + extensions.len(), packet.len()));
        }
    }

    #[test]
    fn packet_without_a_length_has_that_of_the_capture() {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.resize(60, 0);
        for octets in [packet, [&[0x60, 0, 0, 0, 0, 0, 6, 64][..], &[1; 52]].concat()] {
            let header = IpHeader::parse(CapturedIp { octets: &octets, cut: 14_000 }).unwrap();
            assert_eq!(header.length, 14_060);
            let header = IpHeader::parse(CapturedIp { octets: &octets, cut: u32::MAX }).unwrap();
            assert_eq!(header.length, MAX_OCTETS);
        }
    }
}
