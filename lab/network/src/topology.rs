//! Nodes, interfaces, links, and routes.

use std::sync::Arc;

use hol_base::{Duration, Time};
use hol_wire::Address;

use crate::event::LinkDirection;
use crate::identifier::{InterfaceId, LinkId, NodeId};
use crate::ip::Ip;
use crate::link_change::LinkChange;
use crate::spec::Settings;

/// The nodes, and how they are connected.
#[derive(Debug)]
pub struct Topology {
    pub(crate) ip: Ip,
    pub(crate) nodes: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) links: Vec<LinkDirectionSettings>,
    pub(crate) segments: Vec<Segment>,
    /// For each node, the route to every address of the other nodes, ascending by address.
    pub(crate) routes: Arc<Vec<Vec<Route>>>,
    /// The changes of links, in order of time.
    pub(crate) link_changes: Vec<ScheduledChange>,
    /// The changes of addresses, in order of time.
    pub(crate) address_changes: Vec<AddressChange>,
    /// The changes of routes, in order of time.
    pub(crate) route_changes: Vec<RouteChange>,
}

/// An interface of a node on a segment.
#[derive(Debug, Clone, Copy)]
pub struct Interface {
    /// The node of the interface.
    pub node: NodeId,
    /// The address of the interface.
    pub address: Address,
}

/// A link direction before the run: its name, which also names its random streams, and its settings.
#[derive(Debug)]
pub struct LinkDirectionSettings {
    /// Name of the link direction: `link/1/up`, `link/1/down`, `lan/2`.
    pub name: String,
    /// Every setting, defaults included.
    pub settings: Settings,
}

/// A link or a LAN: interfaces that reach each other in one hop.
#[derive(Debug)]
pub struct Segment {
    /// Name of the segment in events and drawings.
    pub label: String,
    /// The interfaces, in the order of the table.
    pub interfaces: Vec<InterfaceId>,
    /// The link directions between the interfaces.
    pub medium: Medium,
}

/// The link directions of a segment.
#[derive(Debug, Clone, Copy)]
pub enum Medium {
    /// A link: one link direction each way; `up` leads away from the segment's first interface.
    Link {
        /// From the first interface to the second.
        up: LinkId,
        /// From the second interface to the first.
        down: LinkId,
    },
    /// A LAN: one link direction for all interfaces.
    Lan(LinkId),
}

/// The next hop to an address.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The destination address.
    pub destination: Address,
    /// The link direction of this hop.
    pub link: LinkId,
    /// The interface that sends.
    pub from: InterfaceId,
    /// The interface that receives.
    pub to: InterfaceId,
}

/// A scheduled change of a link.
#[derive(Debug, Clone)]
pub struct ScheduledChange {
    /// Time since the start of the run.
    pub at: Time,
    /// The link that changes.
    pub link: LinkId,
    /// What changes on the link.
    pub change: LinkChange,
}

/// A node gets or loses an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressChange {
    /// Time of the change, since the start of the run.
    pub at: Time,
    /// The node that gets or loses the address.
    pub node: NodeId,
    /// The address that is added or removed.
    pub address: Address,
    /// Whether the address is added; otherwise it is removed.
    pub is_added: bool,
}

/// A node's route to an address changes.
#[derive(Debug, Clone, Copy)]
pub struct RouteChange {
    /// Time of the change, since the start of the run.
    pub at: Time,
    /// The node whose route changes.
    pub node: NodeId,
    /// The new route.
    pub route: Route,
}

impl Topology {
    /// Returns the version of IP of all addresses.
    pub fn ip(&self) -> Ip {
        self.ip
    }

    /// Returns the node called `name`.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node == name).map(|index| NodeId(index as u16))
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the addresses of a node, in the order of its interfaces. Interfaces that only a route change uses are
    /// excluded: like a care-of address (RFC 5944), they are another route to the node's other addresses.
    pub fn addresses(&self, node: NodeId) -> Vec<Address> {
        let own =
            (0..).map(InterfaceId).zip(&self.interfaces).filter(|(_, interface)| interface.node == node);
        let is_way = |id| self.route_changes.iter().any(|RouteChange { route, .. }| route.from == id);
        own.filter(|(id, _)| !is_way(*id)).map(|(_, interface)| interface.address).collect()
    }

    /// Returns the names of the nodes.
    pub fn node_names(&self) -> &[String] {
        &self.nodes
    }

    /// Returns the interfaces of all nodes.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Returns all link directions with their final settings.
    pub fn links(&self) -> &[LinkDirectionSettings] {
        &self.links
    }

    /// Returns all links and LANs.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the route from a node to every address of the other nodes.
    pub fn routes(&self, node: NodeId) -> &[Route] {
        &self.routes[usize::from(node.0)]
    }

    /// Returns the link directions from one node to the first address of another; empty for the same node.
    pub fn path(&self, from: NodeId, to: NodeId) -> Vec<&LinkDirectionSettings> {
        self.path_links(from, to).into_iter().map(|link| &self.links[usize::from(link.0)]).collect()
    }

    /// Returns the identifiers of the link directions of [`Self::path`].
    pub(crate) fn path_links(&self, from: NodeId, to: NodeId) -> Vec<LinkId> {
        let mut path = Vec::new();
        let (mut node, goal) = (from, self.addresses(to)[0]);
        // Routes are in the order of their destinations.
        while let Ok(at) = self.routes(node).binary_search_by_key(&goal, |route| route.destination) {
            let route = &self.routes(node)[at];
            path.push(route.link);
            node = self.interfaces[usize::from(route.to.0)].node;
        }
        path
    }

    /// Returns the initial delay of each link whose delay changes during the run. The entry is `None` for other links
    /// and for links that share a channel, because the channel decides when they transmit.
    pub(crate) fn changing_delays(&self) -> Vec<Option<Duration>> {
        let changes = |id: usize| {
            let own = self.link_changes.iter().filter(|change| usize::from(change.link.0) == id);
            own.map(|change| &change.change).any(|change| matches!(change, LinkChange::Delay(_)))
        };
        let of_link = |(id, link): (usize, &LinkDirectionSettings)| {
            let is_own = link.settings.channel == Settings::OWN_CHANNEL;
            (is_own && changes(id)).then_some(link.settings.delay)
        };
        self.links.iter().enumerate().map(of_link).collect()
    }

    /// Returns the changes of links during the run, in order of time.
    pub fn link_changes(&self) -> &[ScheduledChange] {
        &self.link_changes
    }

    /// Returns the addresses added and removed during the run, in order of time. An address that is added is
    /// absent at the start.
    pub fn address_changes(&self) -> &[AddressChange] {
        &self.address_changes
    }

    /// Returns the route changes during the run, in order of time.
    pub fn route_changes(&self) -> &[RouteChange] {
        &self.route_changes
    }

    /// Returns the smallest MTU of all links in octets, which path MTU discovery would find.
    pub fn smallest_mtu(&self) -> u64 {
        self.links.iter().map(|link| link.settings.mtu.0).min().expect("a network has links")
    }

    /// Returns the names of all interfaces: the node's name, a colon, and the number of its link or LAN.
    pub fn interface_names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Returns the name of each queue: its interface, or the LAN whose stations share it.
    pub fn queues(&self) -> Vec<String> {
        let senders = self.senders().into_iter().zip(&self.links);
        senders
            .map(|(senders, link)| match senders[..] {
                [only] => self.names[usize::from(only.0)].clone(),
                _ => link.name.clone(),
            })
            .collect()
    }

    /// Returns the sending interfaces of each link.
    pub(crate) fn senders(&self) -> Vec<Vec<InterfaceId>> {
        let mut senders = vec![Vec::new(); self.links.len()];
        for Segment { interfaces, medium, .. } in &self.segments {
            match *medium {
                Medium::Lan(link) => senders[usize::from(link.0)].clone_from(interfaces),
                Medium::Link { up, down } => {
                    for (link, interface) in [up, down].into_iter().zip(interfaces) {
                        senders[usize::from(link.0)] = vec![*interface];
                    }
                }
            }
        }
        senders
    }

    /// Returns the name of a node.
    pub(crate) fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[usize::from(node.0)]
    }
}

impl Medium {
    /// Returns the link directions that `which` selects.
    pub(crate) fn links(self, which: LinkDirection) -> Vec<LinkId> {
        match (self, which) {
            (Self::Link { up, down }, LinkDirection::Both) => vec![up, down],
            (Self::Link { up, .. }, LinkDirection::Up) => vec![up],
            (Self::Link { down, .. }, LinkDirection::Down) => vec![down],
            (Self::Lan(link), LinkDirection::Both) => vec![link],
            (Self::Lan(_), _) => vec![],
        }
    }
}
