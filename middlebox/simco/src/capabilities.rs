//! The capabilities of a middlebox. RFC 4540 section 4.3.3.

use bytes::BufMut;

use crate::attribute::Attribute;
use crate::{IpVersion, Lifetime};

/// The capabilities attribute of an SE reply.
///
/// ```text
/// +---------------+-+-+-+-+---+---+-------------------------------+
/// |    MB type    |I|E|P|S|IIV|EIV|           reserved            |
/// +---------------+-+-+-+-+---+---+-------------------------------+
/// |                   max policy rule lifetime                    |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The field MB type: a sum of constants such as [`NAT`](Capabilities::NAT).
    pub middlebox_type: u8,
    /// The bits I, E, P and S, then two bits each for IIV and EIV (1 = IPv4, 2 = IPv6, 3 = both): a sum of constants
    /// such as [`PERSISTENT`](Capabilities::PERSISTENT).
    pub flags: u8,
    /// The longest lifetime that the middlebox grants.
    pub max_lifetime: Lifetime,
}

impl Capabilities {
    /// Bit of MB type: the middlebox is a packet filter firewall.
    pub const PACKET_FILTER: u8 = 0x80;
    /// Bit of MB type: the middlebox is a network address translator.
    pub const NAT: u8 = 0x40;
    /// Bit of MB type: PDR transactions are supported.
    pub const PDR: u8 = 0x10;
    /// Bit of MB type: the NAT is a twice NAT.
    pub const TWICE_NAT: u8 = 0x04;
    /// Bit of MB type: the NAT translates protocols, such as IPv4 and IPv6.
    pub const PROTOCOL_TRANSLATION: u8 = 0x02;
    /// Bit of MB type: the NAT translates ports.
    pub const PORT_TRANSLATION: u8 = 0x01;
    /// Bit I: internal addresses may be wildcards.
    pub const INTERNAL_WILDCARD: u8 = 0x80;
    /// Bit E: external addresses may be wildcards.
    pub const EXTERNAL_WILDCARD: u8 = 0x40;
    /// Bit P: ports may be wildcards.
    pub const PORT_WILDCARD: u8 = 0x20;
    /// Bit S: policy rules survive a restart of the middlebox.
    pub const PERSISTENT: u8 = 0x10;
    /// Bits IIV and EIV: internal and external addresses may be IPv4.
    pub const IPV4: u8 = 0b0101;
    /// Bits IIV and EIV: internal and external addresses may be IPv6.
    pub const IPV6: u8 = 0b1010;

    /// Returns the capabilities of a pure IPv4 firewall that supports all wildcards.
    pub const fn firewall(max_lifetime: Lifetime) -> Self {
        let wildcards = Self::INTERNAL_WILDCARD | Self::EXTERNAL_WILDCARD | Self::PORT_WILDCARD;
        Self { middlebox_type: Self::PACKET_FILTER, flags: wildcards | Self::IPV4, max_lifetime }
    }

    /// Returns true if all bits of `flags` are set.
    pub const fn allows(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Returns true if all bits of `function` are set in MB type.
    pub const fn includes(&self, function: u8) -> bool {
        self.middlebox_type & function == function
    }

    /// Returns true if internal addresses may have this IP version.
    pub const fn supports_internal(&self, version: IpVersion) -> bool {
        self.flags >> 2 & version.code() != 0
    }

    /// Returns true if external addresses may have this IP version.
    pub const fn supports_external(&self, version: IpVersion) -> bool {
        self.flags & version.code() != 0
    }
}

impl Attribute for Capabilities {
    const KIND: u16 = 0x0004;

    fn parse(value: &[u8]) -> Option<Self> {
        let [middlebox_type, flags, _, _, lifetime @ ..]: [u8; 8] = value.try_into().ok()?;
        Some(Self { middlebox_type, flags, max_lifetime: Lifetime(u32::from_be_bytes(lifetime)) })
    }
    fn length(&self) -> usize {
        8
    }
    fn emit(&self, out: &mut Vec<u8>) {
        out.put_slice(&[self.middlebox_type, self.flags, 0, 0]);
        out.put_u32(self.max_lifetime.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A NAPT with packet filter and PDR has the MB type 0xD1. RFC 4540 section 4.3.3.
    #[test]
    fn the_example_of_the_rfc_has_its_middlebox_type() {
        let napt = Capabilities::NAT | Capabilities::PORT_TRANSLATION;
        assert_eq!(napt | Capabilities::PACKET_FILTER | Capabilities::PDR, 0xD1);
    }

    /// The example of RFC 4540 section 4.3.3, figure 7: I, E and P are set, IIV = EIV = 1, and the maximum lifetime is
    /// one hour.
    #[test]
    fn firewall_capabilities_match_figure_7() {
        let mut out = Vec::new();
        Capabilities::firewall(Lifetime(3600)).emit(&mut out);
        assert_eq!(out, [0x80, 0b1110_0101, 0, 0, 0, 0, 0x0e, 0x10]);
        assert_eq!(Capabilities::parse(&out), Some(Capabilities::firewall(Lifetime(3600))));
    }
}
