//! The parameter sets of PRR and PER. RFC 4540 sections 4.3.9 and 4.3.10.

use bytes::BufMut;

use crate::attribute::Attribute;
use crate::codes::codes;

codes!(
    /// The direction of the data that a rule lets pass. RFC 4540 section 4.3.10.
    Direction {
        /// Data from the external to the internal host.
        Inbound = 0x01,
        /// Data from the internal to the external host.
        Outbound = 0x02,
        /// Data in both directions.
        BiDirectional = 0x03,
    }
);

codes!(
    /// Whether a translated port keeps its parity. RFC 4540 section 4.3.10.
    PortParity {
        /// The translated port may have any parity.
        Any = 0x00,
        /// An odd port stays odd, and an even port stays even.
        Same = 0x03,
    }
);

codes!(
    /// The parity of reserved ports. RFC 4540 section 4.3.9.
    ReservedParity {
        /// The first port may be odd or even.
        Any = 0b00,
        /// The first port is odd.
        Odd = 0b01,
        /// The first port is even.
        Even = 0b10,
    }
);

codes!(
    /// The mode of a NAT. RFC 4540 section 4.3.9.
    NatMode {
        /// The NAT translates the addresses of internal hosts only.
        Traditional = 0b01,
        /// The NAT translates the addresses of internal and of external hosts.
        Twice = 0b10,
    }
);

codes!(
    /// The IP version of a reservation. RFC 4540 section 4.3.9.
    IpChoice {
        /// The address may have either IP version.
        Any = 0b00,
        /// The address is IPv4.
        V4 = 0b01,
        /// The address is IPv6.
        V6 = 0b10,
    }
);

/// The parameters of a PER or PEA request beyond its addresses.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  port parity  |   direction   |           reserved            |
/// +---------------+---------------+-------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerParameters {
    /// Whether a translated port keeps its parity.
    pub parity: PortParity,
    /// Direction of the data that may pass.
    pub direction: Direction,
}

impl Attribute for PerParameters {
    const KIND: u16 = 0x000B;

    fn parse(value: &[u8]) -> Option<Self> {
        let [parity, direction, _reserved @ ..]: [u8; 4] = value.try_into().ok()?;
        Some(Self { parity: PortParity::from_code(parity)?, direction: Direction::from_code(direction)? })
    }
    fn length(&self) -> usize {
        4
    }
    fn emit(&self, out: &mut Vec<u8>) {
        out.put_slice(&[self.parity.code(), self.direction.code(), 0, 0]);
    }
}

/// The parameters of a PRR request.
///
/// ```text
/// +---+---+---+---+---------------+-------------------------------+
/// |NM |PP |IPi|IPo|trnsp. protocol|           port range          |
/// +---+---+---+---+---------------+-------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrrParameters {
    /// NM: the mode of the NAT.
    pub nat_mode: NatMode,
    /// PP: the parity of the first port.
    pub parity: ReservedParity,
    /// IPi: the IP version of the inside address.
    pub inside: IpChoice,
    /// IPo: the IP version of the outside address.
    pub outside: IpChoice,
    /// IP protocol number; 0 reserves a whole address.
    pub protocol: u8,
    /// Number of consecutive ports, at least 1; 0xFFFF means all ports.
    pub port_range: u16,
}

impl PrrParameters {
    /// The port range that means all ports of the protocol.
    pub const ALL_PORTS: u16 = 0xFFFF;
}

impl Attribute for PrrParameters {
    const KIND: u16 = 0x000A;

    fn parse(value: &[u8]) -> Option<Self> {
        let [bits, protocol, r0, r1]: [u8; 4] = value.try_into().ok()?;
        let port_range = u16::from_be_bytes([r0, r1]);
        let parameters = Self {
            nat_mode: NatMode::from_code(bits >> 6)?,
            parity: ReservedParity::from_code(bits >> 4 & 0b11)?,
            inside: IpChoice::from_code(bits >> 2 & 0b11)?,
            outside: IpChoice::from_code(bits & 0b11)?,
            protocol,
            port_range,
        };
        (port_range > 0).then_some(parameters)
    }
    fn length(&self) -> usize {
        4
    }
    fn emit(&self, out: &mut Vec<u8>) {
        let versions = self.inside.code() << 2 | self.outside.code();
        out.put_u8(self.nat_mode.code() << 6 | self.parity.code() << 4 | versions);
        out.put_u8(self.protocol);
        out.put_u16(self.port_range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 4540 section 4.3.9, figure 13: twice NAT (10), even port (10), IPv4 inside (01), IPv6 outside
    /// (10).
    #[test]
    fn the_prr_parameters_are_packed_two_bits_each() {
        let parameters = PrrParameters {
            nat_mode: NatMode::Twice,
            parity: ReservedParity::Even,
            inside: IpChoice::V4,
            outside: IpChoice::V6,
            protocol: 17,
            port_range: 2,
        };
        let mut out = Vec::new();
        parameters.emit(&mut out);
        assert_eq!(out, [0b1010_0110, 17, 0, 2]);
        assert_eq!(PrrParameters::parse(&out), Some(parameters));
    }

    /// Values that RFC 4540 sections 4.3.9 and 4.3.10 leave undefined are refused.
    #[test]
    fn undefined_parameters_are_refused() {
        for octets in
            [[0b0000_0000, 0, 0, 1], [0b0111_0000, 0, 0, 1], [0b0100_0011, 0, 0, 1], [0x40, 0, 0, 0]]
        {
            assert_eq!(PrrParameters::parse(&octets), None, "{octets:x?}");
        }
        for octets in [[1, 1, 0, 0], [0, 0, 0, 0], [0, 4, 0, 0]] {
            assert_eq!(PerParameters::parse(&octets), None, "{octets:x?}");
        }
    }

    /// The reserved octets are ignored when a message is received. RFC 4540 section 4.3.10.
    #[test]
    fn reserved_octets_are_ignored() {
        let expected = PerParameters { parity: PortParity::Same, direction: Direction::BiDirectional };
        assert_eq!(PerParameters::parse(&[3, 3, 0xff, 0xff]), Some(expected));
    }
}
