//! A route that changes: what a node sends to an address leaves through another of its interfaces.

use std::net::IpAddr;

use hol_base::Time;

use super::GuestError;
use super::netlink::Routing;
use super::route;

/// What a node sends to `destination` takes another way at a time.
#[derive(Debug)]
pub(super) struct Reroute {
    pub(super) at: Time,
    /// Of the node's namespace.
    pub(super) routing: Routing,
    /// The node's interface on that way.
    pub(super) interface: u32,
    pub(super) destination: IpAddr,
    /// The address that the node keeps.
    pub(super) source: IpAddr,
}

impl Reroute {
    /// In one message, so that no packet finds no way. Sockets hear nothing of it: Linux looks their next packets' way up again.
    pub(super) fn take_place(&self) -> Result<(), GuestError> {
        let Self { routing, interface, destination, source, .. } = self;
        route::change(routing, *interface, *destination, *source)
    }
}
