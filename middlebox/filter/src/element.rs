//! What a rule comes to in a filter: elements of sets and maps.

use std::net::IpAddr;

use hol_simco::IpVersion;

use crate::ports::Block;

/// What an element does to the packets that match it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Drops them, whatever else allows them.
    Block,
    /// Lets them pass to internal hosts.
    Inbound,
    /// Lets them pass to external hosts.
    Outbound,
    /// Gives a connection's first packet another destination.
    Dnat,
    /// Gives it another source.
    Snat,
}

/// Packets, and what becomes of them. Fields that are wildcards are no part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element {
    pub role: Role,
    /// IP protocol number; `None` is any, and then so are the ports.
    pub protocol: Option<u8>,
    pub source: End,
    pub destination: End,
}

/// One end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End {
    /// An address; bits beyond the prefix are zero.
    pub address: IpAddr,
    /// Bits of the prefix.
    pub length: u8,
    /// `None` is any.
    pub port: Option<Block>,
}

/// What a NAT writes in the place of an end; without a port it leaves the port alone.
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
    /// A prefix, with the bits beyond it made zero.
    pub fn new(address: IpAddr, length: u8, port: Option<Block>) -> Self {
        let address = match address {
            IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & mask_v4(length)).into()),
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & mask_v6(length)).into()),
        };
        Self { address, length, port }
    }

    /// Every host and port of the version of `address`.
    pub fn any(address: IpAddr) -> Self {
        Self::new(address, 0, None)
    }

    /// One host, and the port if there is one.
    pub fn host(target: Target) -> Self {
        let port = target.port.map(Block::of_port);
        Self::new(target.address, IpVersion::of(target.address).address_bits(), port)
    }
}

/// `length` ones, then zeros.
pub(crate) fn mask_v4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

/// `length` ones, then zeros.
pub(crate) fn mask_v6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}
