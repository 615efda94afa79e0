//! The addresses of an association.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses between which UDP datagrams with SCTP packets are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UdpPath {
    /// The peer's address and UDP port.
    pub peer: SocketAddr,
    /// The address of this host.
    pub local: IpAddr,
}

/// Returns the loopback address of the same IP version as `like`, for an endpoint that has not received a packet yet.
pub(crate) fn loopback(like: IpAddr) -> IpAddr {
    if like.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() }
}
