//! A node's attachment to a link, which comes and goes as the node moves: an address, and the ways that lead from it.

use std::net::IpAddr;

use hol_base::Time;

use super::GuestError;
use super::netlink::Routing;
use super::path_manager::PathManager;
use super::route::{self, MAIN};

/// What a node has of a link while it is there.
#[derive(Debug)]
pub(super) struct Attachment {
    /// Of the node's namespace.
    pub(super) routing: Routing,
    /// The node's interface on the link.
    pub(super) interface: u32,
    pub(super) address: IpAddr,
    /// The ways of packets from this address.
    pub(super) table: u8,
    /// Whom it reaches here.
    pub(super) peers: Vec<IpAddr>,
    /// The hardware address of the router.
    pub(super) router: [u8; 6],
    /// Of two links through which a peer is reached, what has no address of its own yet takes the one with less of it.
    pub(super) metric: u32,
}

/// An attachment comes or goes.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) at: Time,
    pub(super) comes: bool,
    pub(super) attachment: Attachment,
    /// Of its node, if there is MPTCP.
    pub(super) path_manager: Option<PathManager>,
}

impl Attachment {
    /// The address comes; its ways before it, so that they are there for whoever hears of it.
    pub(super) fn come(&self) -> Result<(), GuestError> {
        let Self { routing, interface, address, table, peers, router, metric } = self;
        for peer in peers {
            for (table, metric) in [(MAIN, *metric), (*table, 0)] {
                route::host(routing, table, metric, *interface, *peer, *router)?;
            }
        }
        route::from(routing, *address, *table)?;
        route::address(routing, *interface, *address)
    }

    /// The address goes. It is the last of its interface, so Linux forgets the ways with it.
    pub(super) fn go(&self) -> Result<(), GuestError> {
        route::forget(&self.routing, self.interface, self.address)
    }
}

impl Move {
    pub(super) fn take_place(&self) -> Result<(), GuestError> {
        let Attachment { address, interface, .. } = self.attachment;
        if self.comes {
            self.attachment.come()?;
            self.path_manager.iter().try_for_each(|manager| manager.add(address, interface))
        } else {
            self.path_manager.iter().try_for_each(|manager| manager.remove(address))?;
            self.attachment.go()
        }
    }
}
