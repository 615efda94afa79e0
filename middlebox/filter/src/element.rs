//! Elements of sets and maps. In a packet filter each rule consists of such elements.

use std::net::IpAddr;

use hol_simco::IpVersion;

use crate::ports::PortBlock;

/// The effect of an element on matching packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Drops the packets, even if other elements allow them.
    Block,
    /// Lets the packets pass to internal hosts.
    Inbound,
    /// Lets the packets pass to external hosts.
    Outbound,
    /// Changes the destination of a connection's first packet.
    Dnat,
    /// Changes the source of a connection's first packet.
    Snat,
}

/// An element: the packets that it matches, and its effect on them. Wildcard fields are not part of the element's
/// key in its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element {
    pub role: Role,
    /// IP protocol number; `None`: any protocol, which implies any port.
    pub protocol: Option<u8>,
    pub source: End,
    pub destination: End,
}

/// One end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End {
    /// An address; bits beyond the prefix are zero.
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub length: u8,
    /// Port or block of ports; `None`: any port.
    pub port: Option<PortBlock>,
}

/// The new address and port of an end that a NAT translates. Without a port, the port stays.
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
    /// Creates an end from a prefix; sets the bits beyond the prefix to zero.
    pub fn new(address: IpAddr, length: u8, port: Option<PortBlock>) -> Self {
        let address = match address {
            IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & mask_v4(length)).into()),
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & mask_v6(length)).into()),
        };
        Self { address, length, port }
    }

    /// Returns the end that matches every host and port with the IP version of `address`.
    pub fn any(address: IpAddr) -> Self {
        Self::new(address, 0, None)
    }

    /// Returns the end that matches one host, and one port if `target` has a port.
    pub fn host(target: Target) -> Self {
        let port = target.port.map(PortBlock::of_port);
        Self::new(target.address, IpVersion::of(target.address).address_bits(), port)
    }
}

/// Returns the IPv4 mask of `length` ones.
pub(crate) fn mask_v4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// Returns the IPv6 mask of `length` ones.
pub(crate) fn mask_v6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}
