//! Address tuples. RFC 4540 section 4.3.8.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::BufMut;

use crate::Prefix;
use crate::attribute::Attribute;
use crate::codes::codes;

/// The side of the middlebox on which an address is seen. RFC 4540 section 4.3.8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// A0: the host on the internal side of the middlebox.
    Internal,
    /// A1: the middlebox as the internal host sees it.
    Inside,
    /// A2: the middlebox as the external host sees it.
    Outside,
    /// A3: the host on the external side of the middlebox.
    External,
    /// A location code that RFC 4540 does not define. The tuple is well formed, but no rule can contain it
    /// (section 8.3.1).
    Undefined(u8),
}

impl Location {
    /// Returns the number of the side on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Internal => 0x00,
            Self::Inside => 0x01,
            Self::Outside => 0x02,
            Self::External => 0x03,
            Self::Undefined(code) => code,
        }
    }

    /// Returns the side that this number means on the wire.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0x00 => Self::Internal,
            0x01 => Self::Inside,
            0x02 => Self::Outside,
            0x03 => Self::External,
            code => Self::Undefined(code),
        }
    }
}

codes!(
    /// IP version of an address tuple.
    IpVersion {
        /// IPv4.
        V4 = 0x1,
        /// IPv6.
        V6 = 0x2,
    }
);

/// The addresses, ports and protocols of a rule, seen from one side.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------+-------+---------------+---------------+---------------+
/// |  0/1  |IP ver.| prefix length |trnsp. protocol|   location    |
/// +-------+-------+---------------+---------------+---------------+
/// |          port number          |          port range           |  full addresses only
/// +-------------------------------+-------------------------------+
/// |                    IPv4 or IPv6 address                       |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressTuple {
    /// The side on which the addresses are seen.
    pub location: Location,
    /// IP protocol number; 0 means any protocol.
    pub protocol: u8,
    /// Prefix length in bits; if shorter than the address, the address is a wildcard.
    pub prefix_length: u8,
    /// Addresses and ports, or only the IP version.
    pub addresses: Addresses,
}

/// The content of a tuple other than the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// Addresses and ports: a full tuple.
    Full {
        /// IP address or prefix.
        address: IpAddr,
        /// First port; 0 means any port.
        port: u16,
        /// Number of consecutive ports, at least 1.
        port_range: u16,
    },
    /// Only the IP version: a tuple that covers all addresses and ports.
    ProtocolsOnly(IpVersion),
}

/// Value of the high nibble of the first octet of a tuple with addresses.
const FULL_TUPLE: u8 = 0x0;
const PROTOCOLS_ONLY: u8 = 0x1;

impl AddressTuple {
    /// Creates a tuple of one host and one port; port 0 means any port.
    pub fn of_host(location: Location, protocol: u8, host: SocketAddr) -> Self {
        let addresses = Addresses::Full { address: host.ip(), port: host.port(), port_range: 1 };
        Self { location, protocol, prefix_length: addresses.ip_version().address_bits(), addresses }
    }

    /// Returns the same addresses seen from another side.
    pub fn seen_from(self, location: Location) -> Self {
        Self { location, ..self }
    }

    /// Returns the IP version of the addresses.
    pub fn ip_version(&self) -> IpVersion {
        self.addresses.ip_version()
    }

    /// Returns the addresses of the tuple, or all addresses of the IP version if the tuple contains only
    /// protocols. RFC 4540 section 8.3.1.
    pub fn prefix(&self) -> Prefix {
        match self.addresses {
            Addresses::Full { address, .. } => {
                Prefix::new(address, self.prefix_length).expect("a prefix is no longer than its address")
            }
            Addresses::ProtocolsOnly(version) => Prefix::all(version),
        }
    }

    /// Returns the first and the last port of the tuple: 0 and 65,535 if it covers any port. The last port is
    /// above 65,535 if the range extends beyond the last valid port.
    pub fn ports(&self) -> (u32, u32) {
        match self.addresses {
            Addresses::Full { port, port_range, .. } if self.protocol != 0 && port != 0 => {
                (u32::from(port), u32::from(port) + u32::from(port_range) - 1)
            }
            _ => (0, u32::from(u16::MAX)),
        }
    }

    /// Returns true if the tuple covers more than one address. RFC 4540 section 8.3.1.
    pub fn has_address_wildcard(&self) -> bool {
        match self.addresses {
            Addresses::Full { .. } => self.prefix_length < self.ip_version().address_bits(),
            Addresses::ProtocolsOnly(_) => true,
        }
    }

    /// Returns true if the tuple covers every protocol, and so every port. RFC 4540 section 8.3.1.
    pub fn has_protocol_wildcard(&self) -> bool {
        self.protocol == 0
    }

    /// Returns true if the tuple covers every port of its protocol. RFC 4540 section 8.3.1.
    pub fn has_port_wildcard(&self) -> bool {
        let names_no_port =
            matches!(self.addresses, Addresses::Full { port: 0, .. } | Addresses::ProtocolsOnly(_));
        names_no_port && !self.has_protocol_wildcard()
    }

    /// Returns true if some packet matches both tuples. RFC 4540 section 8.8.1.
    pub fn overlaps(&self, other: &Self) -> bool {
        let either_protocol = self.has_protocol_wildcard() || other.has_protocol_wildcard();
        let ((first, last), (other_first, other_last)) = (self.ports(), other.ports());
        (either_protocol || self.protocol == other.protocol)
            && (first <= other_last && other_first <= last)
            && self.prefix().overlaps(&other.prefix())
    }
}

impl Addresses {
    /// Returns the IP version of the tuple.
    pub fn ip_version(&self) -> IpVersion {
        match self {
            Self::Full { address, .. } => IpVersion::of(*address),
            Self::ProtocolsOnly(version) => *version,
        }
    }
}

impl IpVersion {
    /// Returns the IP version of an address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Returns the length of an address in bits.
    pub const fn address_bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

fn parse_addresses(kind: u8, version: IpVersion, octets: &[u8]) -> Option<Addresses> {
    if kind == PROTOCOLS_ONLY {
        return octets.is_empty().then_some(Addresses::ProtocolsOnly(version));
    }
    let ([p0, p1, r0, r1], address) = octets.split_first_chunk()?;
    let address = match version {
        IpVersion::V4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?)),
        IpVersion::V6 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?)),
    };
    let port_range = u16::from_be_bytes([*r0, *r1]);
    (kind == FULL_TUPLE && port_range > 0).then_some(Addresses::Full {
        address,
        port: u16::from_be_bytes([*p0, *p1]),
        port_range,
    })
}

impl Attribute for AddressTuple {
    const KIND: u16 = 0x0009;

    #[inline]
    fn parse(value: &[u8]) -> Option<Self> {
        let ([kind_and_version, prefix_length, protocol, location], rest) = value.split_first_chunk()?;
        let version = IpVersion::from_code(kind_and_version & 0x0f)?;
        let addresses = parse_addresses(kind_and_version >> 4, version, rest)?;
        let tuple = Self {
            location: Location::from_code(*location),
            protocol: *protocol,
            prefix_length: *prefix_length,
            addresses,
        };
        // The port fields are ignored without an address.
        let is_irrelevant = matches!(addresses, Addresses::ProtocolsOnly(_));
        (is_irrelevant || *prefix_length <= version.address_bits()).then_some(tuple)
    }

    fn length(&self) -> usize {
        match self.addresses {
            Addresses::Full { address: IpAddr::V4(_), .. } => 12,
            Addresses::Full { address: IpAddr::V6(_), .. } => 24,
            Addresses::ProtocolsOnly(_) => 4,
        }
    }

    #[inline]
    fn emit(&self, out: &mut Vec<u8>) {
        let kind = match self.addresses {
            Addresses::Full { .. } => FULL_TUPLE,
            Addresses::ProtocolsOnly(_) => PROTOCOLS_ONLY,
        };
        let kind_and_version = kind << 4 | self.addresses.ip_version().code();
        let head = [kind_and_version, self.prefix_length, self.protocol, self.location.code()];
        let Addresses::Full { address, port, port_range } = self.addresses else {
            return out.put_slice(&head);
        };
        // All fields are appended in one piece, because an append costs the same for any length.
        let (head, ports) = (u32::from_be_bytes(head), u32::from(port) << 16 | u32::from(port_range));
        match address {
            IpAddr::V4(address) => {
                out.put_slice([head, ports, address.to_bits()].map(u32::to_be_bytes).as_flattened());
            }
            IpAddr::V6(address) => {
                out.put_u64(u64::from(head) << 32 | u64::from(ports));
                out.put_slice(&address.octets());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(tuple: &AddressTuple) -> Vec<u8> {
        let mut out = Vec::new();
        tuple.emit(&mut out);
        assert_eq!(out.len(), tuple.length());
        assert_eq!(AddressTuple::parse(&out).as_ref(), Some(tuple));
        out
    }

    /// RFC 4540 section 4.3.8, figure 12, filled in by hand.
    #[test]
    fn the_three_layouts_match_figure_12() {
        let v4 = AddressTuple::of_host(Location::Internal, 17, "192.0.2.1:5004".parse().unwrap());
        assert_eq!(octets(&v4), [0x01, 32, 17, 0, 0x13, 0x8c, 0, 1, 192, 0, 2, 1]);
        let v6 = AddressTuple::of_host(Location::External, 6, "[2001:db8::1]:80".parse().unwrap());
        let address = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(octets(&v6), [&[0x02, 128, 6, 3, 0, 80, 0, 1][..], &address].concat());
        let protocols = AddressTuple {
            location: Location::Outside,
            protocol: 17,
            prefix_length: 0,
            addresses: Addresses::ProtocolsOnly(IpVersion::V4),
        };
        assert_eq!(octets(&protocols), [0x11, 0, 17, 2]);
    }

    /// RFC 4540 section 4.3.8: the port range is at least one, and the other fields have defined values.
    #[test]
    fn undefined_values_are_refused() {
        let good = [0x01, 32, 17, 0, 0x13, 0x8c, 0, 1, 192, 0, 2, 1];
        assert!(AddressTuple::parse(&good).is_some());
        for (at, bad) in [(0, 0x21), (0, 0x03), (1, 33), (7, 0)] {
            let mut octets = good;
            octets[at] = bad;
            assert_eq!(AddressTuple::parse(&octets), None, "octet {at} = {bad:#x}");
        }
        assert_eq!(AddressTuple::parse(&good[..11]), None);
    }

    /// RFC 4540 section 8.3.1. A wildcard protocol makes the ports irrelevant, so port 0 adds nothing to it.
    #[test]
    fn wildcards_are_recognized() {
        let any_port = AddressTuple::of_host(Location::External, 17, "198.51.100.7:0".parse().unwrap());
        assert!(any_port.has_port_wildcard() && !any_port.has_address_wildcard());
        let net = AddressTuple { prefix_length: 24, ..any_port };
        assert!(net.has_address_wildcard());
        let any_protocol = AddressTuple { protocol: 0, ..any_port };
        assert!(any_protocol.has_protocol_wildcard() && !any_protocol.has_port_wildcard());
        let protocol_only = AddressTuple {
            addresses: Addresses::ProtocolsOnly(IpVersion::V4),
            prefix_length: 32,
            ..any_port
        };
        assert!(protocol_only.has_address_wildcard() && protocol_only.has_port_wildcard());
    }

    /// RFC 4540 section 8.8.1: the example of an attacker, and near misses in address, port and protocol.
    #[test]
    fn tuples_overlap_if_a_packet_matches_both() {
        let host = |host: &str| AddressTuple::of_host(Location::External, 17, host.parse().unwrap());
        let anybody = AddressTuple { prefix_length: 0, ..host("0.0.0.0:0") };
        let attacker = host("192.0.2.100:0");
        assert!(anybody.overlaps(&attacker) && attacker.overlaps(&anybody));
        assert!(attacker.overlaps(&host("192.0.2.100:7")));
        assert!(!attacker.overlaps(&host("192.0.2.101:7")));
        assert!(!attacker.overlaps(&AddressTuple { protocol: 6, ..attacker }));
        assert!(attacker.overlaps(&AddressTuple { protocol: 0, ..attacker }));
        let mut ten_ports = host("192.0.2.100:7");
        let Addresses::Full { port_range, .. } = &mut ten_ports.addresses else { unreachable!() };
        *port_range = 10;
        assert!(ten_ports.overlaps(&host("192.0.2.100:16")) && !ten_ports.overlaps(&host("192.0.2.100:17")));
    }
}
