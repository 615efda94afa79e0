//! Elements of sets and maps. In a packet filter each rule consists of such elements.

use std::net::IpAddr;

use hol_simco::IpVersion;

use crate::ports::PortBlock;

/// The effect of an element on the packets that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The element drops packets, even if other elements let them pass.
    Block,
    /// The element lets packets to internal hosts pass.
    Inbound,
    /// The element lets packets to external hosts pass.
    Outbound,
    /// The element changes the destination of the first packet of a connection, and thus of the connection.
    Dnat,
    /// The element changes the source of the first packet of a connection, and thus of the connection.
    Snat,
}

/// An element of a set: the packets that it matches, and its effect on them. Fields that are wildcards are not part of
/// the element's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element {
    pub role: Role,
    /// IP protocol number; `None` means any protocol, and then the ports are wildcards, too.
    pub protocol: Option<u8>,
    pub source: End,
    pub destination: End,
}

/// One end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End {
    /// The IP address; bits beyond the prefix are zero.
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub length: u8,
    /// Port or block of ports; `None`: any port.
    pub port: Option<PortBlock>,
}

/// The address and port to which a NAT translates an end of a flow. Without a port, the original port stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub address: IpAddr,
    pub port: Option<u16>,
}

impl Element {
    pub fn version(&self) -> IpVersion {
        IpVersion::of(self.destination.address)
    }
}

impl End {
    /// Creates an end from an address prefix; the bits of the address beyond the prefix are set to zero.
    pub fn new(address: IpAddr, length: u8, port: Option<PortBlock>) -> Self {
        let address = match address {
            IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & mask_v4(length)).into()),
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & mask_v6(length)).into()),
        };
        Self { address, length, port }
    }

    /// Returns the end that matches every host and port of the IP version of `address`.
    pub fn any(address: IpAddr) -> Self {
        Self::new(address, 0, None)
    }

    /// Returns the end that matches the host of `target`, and its port if `target` has one.
    pub fn host(target: Target) -> Self {
        let port = target.port.map(PortBlock::of_port);
        Self::new(target.address, IpVersion::of(target.address).address_bits(), port)
    }
}

/// Returns the IPv4 mask that starts with `length` ones.
pub(crate) fn mask_v4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// Returns the IPv6 mask that starts with `length` ones.
pub(crate) fn mask_v6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}
