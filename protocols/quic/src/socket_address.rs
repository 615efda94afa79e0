//! Where an endpoint is.

use std::net::SocketAddr;

use hol_wire::Address;

/// An address and a port.
pub(crate) type SocketAddress = (Address, u16);

pub(crate) fn socket_address((address, port): SocketAddress) -> SocketAddr {
    SocketAddr::from((address, port))
}
