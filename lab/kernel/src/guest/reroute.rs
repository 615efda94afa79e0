//! Changes a route, so that packets of a node to an address leave through another interface.

use std::net::IpAddr;

use hol_base::Time;

use super::GuestError;
use super::netlink::RoutingSocket;
use super::route;

/// A scheduled change of the route to `destination`.
#[derive(Debug)]
pub(super) struct Reroute {
    /// When the change happens.
    pub(super) at: Time,
    /// Routing socket of the node's namespace.
    pub(super) routing: RoutingSocket,
    /// Index of the node's interface on the new route.
    pub(super) interface: u32,
    pub(super) destination: IpAddr,
    /// The source address of the route, which stays the same.
    pub(super) source: IpAddr,
}

impl Reroute {
    /// Changes the route in one message, so that there is a route at any time. For its next packet, each socket looks
    /// up its route again.
    pub(super) fn apply(&self) -> Result<(), GuestError> {
        let Self { routing, interface, destination, source, .. } = self;
        route::change_route(routing, *interface, *destination, *source)
    }
}
