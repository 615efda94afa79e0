//! The IP address and port of an endpoint.

use std::net::SocketAddr;

use hol_wire::Address;

/// An IP address and a UDP port.
pub(crate) type SocketAddress = (Address, u16);

/// Converts an address and port to the standard library's `SocketAddr`.
pub(crate) fn socket_address((address, port): SocketAddress) -> SocketAddr {
    SocketAddr::from((address, port))
}
