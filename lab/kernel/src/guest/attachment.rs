//! A node's attachment to a link: an address and the routes from it, which are added and removed when the node moves.

use std::net::IpAddr;

use hol_base::Time;

use super::GuestError;
use super::netlink::RoutingSocket;
use super::path_manager::PathManager;
use super::route::{self, MAIN_TABLE};

/// The address and the routes of a node on a link.
#[derive(Debug)]
pub(super) struct Attachment {
    /// The routing socket of the node's namespace.
    pub(super) routing: RoutingSocket,
    /// Index of the node's interface on the link.
    pub(super) interface: u32,
    pub(super) address: IpAddr,
    /// Number of the routing table for packets from this address.
    pub(super) table: u8,
    /// Peers that are reached through this link.
    pub(super) peers: Vec<IpAddr>,
    /// Hardware address of the router at the other end of the link.
    pub(super) router: [u8; 6],
    /// Metric of the routes. If two links lead to a peer, sockets that are not bound to an address use the route
    /// with the lower metric.
    pub(super) metric: u32,
}

/// A scheduled change: a node gets or loses an address on a link, with its routes.
#[derive(Debug)]
pub(super) struct AttachmentChange {
    /// When the change happens.
    pub(super) at: Time,
    pub(super) is_added: bool,
    pub(super) attachment: Attachment,
    /// The path manager of the node; `None` if no flow uses MPTCP.
    pub(super) path_manager: Option<PathManager>,
}

impl Attachment {
    /// Adds the routes, and then the address, so that the routes exist when the address is announced.
    pub(super) fn add(&self) -> Result<(), GuestError> {
        let Self { routing, interface, address, table, peers, router, metric } = self;
        for peer in peers {
            for (table, metric) in [(MAIN_TABLE, *metric), (*table, 0)] {
                route::add_route(routing, table, metric, *interface, *peer, *router)?;
            }
        }
        route::use_source_table(routing, *address, *table)?;
        route::add_address(routing, *interface, *address)
    }

    /// Removes the address. The interface has no other address, so Linux also removes its routes.
    pub(super) fn remove(&self) -> Result<(), GuestError> {
        route::remove_address(&self.routing, self.interface, self.address)
    }
}

impl AttachmentChange {
    /// Makes the change: adds or removes the address and its routes.
    pub(super) fn apply(&self) -> Result<(), GuestError> {
        let Attachment { address, interface, .. } = self.attachment;
        if self.is_added {
            self.attachment.add()?;
            self.path_manager.iter().try_for_each(|manager| manager.add(address, interface))
        } else {
            self.path_manager.iter().try_for_each(|manager| manager.remove(address))?;
            self.attachment.remove()
        }
    }
}
