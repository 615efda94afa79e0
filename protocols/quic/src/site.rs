//! Where an endpoint is.

use std::net::SocketAddr;

use hol_wire::Address;

/// An address and a port.
pub(crate) type Site = (Address, u16);

pub(crate) fn socket_address((address, port): Site) -> SocketAddr {
    SocketAddr::from((address, port))
}
