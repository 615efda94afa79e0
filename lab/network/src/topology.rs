//! Nodes, interfaces, lines, and the ways between them.

use std::sync::Arc;

use hol_base::Time;
use hol_wire::Address;

use crate::change::Change;
use crate::event::Which;
use crate::identifier::{InterfaceId, LineId, NodeId};
use crate::ip::Ip;
use crate::spec::Settings;

/// Who is connected to whom, by what.
#[derive(Debug)]
pub struct Topology {
    pub(crate) ip: Ip,
    pub(crate) nodes: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) lines: Vec<LinePlan>,
    pub(crate) segments: Vec<Segment>,
    /// For each node, the way to every address that is not its own, ascending by address.
    pub(crate) routes: Arc<Vec<Vec<Route>>>,
    /// Ascending in time.
    pub(crate) changes: Vec<ScheduledChange>,
    /// Ascending in time.
    pub(crate) address_changes: Vec<AddressChange>,
    /// Ascending in time.
    pub(crate) route_changes: Vec<RouteChange>,
}

/// Where a node is on a segment.
#[derive(Debug, Clone, Copy)]
pub struct Interface {
    /// Whose it is.
    pub node: NodeId,
    /// Its address.
    pub address: Address,
}

/// A line before the run: its name, which also names its random streams, and its settings.
#[derive(Debug)]
pub struct LinePlan {
    /// `link/1/up`, `link/1/down`, `lan/2`.
    pub name: String,
    /// Every setting, defaults included.
    pub settings: Settings,
}

/// A link or a LAN: interfaces that reach each other in one hop.
#[derive(Debug)]
pub struct Segment {
    /// What events and drawings call it.
    pub label: String,
    /// In the order of the table.
    pub interfaces: Vec<InterfaceId>,
    /// What lies between them.
    pub medium: Medium,
}

/// The lines of a segment.
#[derive(Debug, Clone, Copy)]
pub enum Medium {
    /// A line for each direction; `up` leads away from the segment's first interface.
    Link {
        /// From the first to the second.
        up: LineId,
        /// From the second to the first.
        down: LineId,
    },
    /// One line for all.
    Lan(LineId),
}

/// The next hop on the way to an address.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The address.
    pub destination: Address,
    /// The line that carries packets on this hop.
    pub line: LineId,
    /// The interface through which they leave.
    pub from: InterfaceId,
    /// The interface at which they arrive.
    pub to: InterfaceId,
}

/// What happens to a line at a time.
#[derive(Debug, Clone)]
pub struct ScheduledChange {
    /// Since the start of the run.
    pub at: Time,
    /// The line.
    pub line: LineId,
    /// What happens.
    pub change: Change,
}

/// A node gets an address of its own, or loses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressChange {
    /// Since the start of the run.
    pub at: Time,
    /// The node.
    pub node: NodeId,
    /// The address.
    pub address: Address,
    /// It was not there and comes; else it goes.
    pub comes: bool,
}

/// What a node sends to an address takes another way from then on.
#[derive(Debug, Clone, Copy)]
pub struct RouteChange {
    /// Since the start of the run.
    pub at: Time,
    /// The node.
    pub node: NodeId,
    /// The new way.
    pub route: Route,
}

impl Topology {
    /// The version of IP that all addresses are of.
    pub fn ip(&self) -> Ip {
        self.ip
    }

    /// The node called `name`.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node == name).map(|index| NodeId(index as u16))
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The addresses that a node is reached at, in the order of its interfaces. Those of interfaces that a route changes to are not
    /// among them: they are another way to the others, as a care-of address is (RFC 5944).
    pub fn addresses(&self, node: NodeId) -> Vec<Address> {
        let own =
            (0..).map(InterfaceId).zip(&self.interfaces).filter(|(_, interface)| interface.node == node);
        let is_way = |id| self.route_changes.iter().any(|RouteChange { route, .. }| route.from == id);
        own.filter(|(id, _)| !is_way(*id)).map(|(_, interface)| interface.address).collect()
    }

    /// The names of the nodes.
    pub fn node_names(&self) -> &[String] {
        &self.nodes
    }

    /// All interfaces.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// All lines, their settings settled.
    pub fn lines(&self) -> &[LinePlan] {
        &self.lines
    }

    /// All links and LANs.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The way from a node to every address that is not its own.
    pub fn routes(&self, node: NodeId) -> &[Route] {
        &self.routes[usize::from(node.0)]
    }

    /// The lines from one node to another, to the first of its addresses; empty if it is the same node.
    pub fn path(&self, from: NodeId, to: NodeId) -> Vec<&LinePlan> {
        let mut path = Vec::new();
        let (mut node, goal) = (from, self.addresses(to)[0]);
        while let Some(route) = self.routes(node).iter().find(|route| route.destination == goal) {
            path.push(&self.lines[usize::from(route.line.0)]);
            node = self.interfaces[usize::from(route.to.0)].node;
        }
        path
    }

    /// What happens during the run, in the order of time.
    pub fn changes(&self) -> &[ScheduledChange] {
        &self.changes
    }

    /// Which addresses come and go during the run, in the order of time. One that comes is not there at the start.
    pub fn address_changes(&self) -> &[AddressChange] {
        &self.address_changes
    }

    /// Which ways change during the run, in the order of time.
    pub fn route_changes(&self) -> &[RouteChange] {
        &self.route_changes
    }

    /// The smallest MTU of all lines, in octets: what path MTU discovery would settle on.
    pub fn smallest_mtu(&self) -> u64 {
        self.lines.iter().map(|line| line.settings.mtu.0).min().expect("a network has lines")
    }

    /// The names of all interfaces: the node's, a colon, and the number of its link or LAN.
    pub fn interface_names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// What the queue before each line is called: by the interface that it belongs to, or by its LAN, whose stations share it.
    pub fn queues(&self) -> Vec<String> {
        let senders = self.senders().into_iter().zip(&self.lines);
        senders
            .map(|(senders, line)| match senders[..] {
                [only] => self.names[usize::from(only.0)].clone(),
                _ => line.name.clone(),
            })
            .collect()
    }

    /// By line: the interfaces that send on it.
    pub(crate) fn senders(&self) -> Vec<Vec<InterfaceId>> {
        let mut senders = vec![Vec::new(); self.lines.len()];
        for Segment { interfaces, medium, .. } in &self.segments {
            match *medium {
                Medium::Lan(line) => senders[usize::from(line.0)].clone_from(interfaces),
                Medium::Link { up, down } => {
                    for (line, interface) in [up, down].into_iter().zip(interfaces) {
                        senders[usize::from(line.0)] = vec![*interface];
                    }
                }
            }
        }
        senders
    }

    pub(crate) fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[usize::from(node.0)]
    }
}

impl Medium {
    pub(crate) fn lines(self, which: Which) -> Vec<LineId> {
        match (self, which) {
            (Self::Link { up, down }, Which::Both) => vec![up, down],
            (Self::Link { up, .. }, Which::Up) => vec![up],
            (Self::Link { down, .. }, Which::Down) => vec![down],
            (Self::Lan(line), Which::Both) => vec![line],
            (Self::Lan(_), _) => vec![],
        }
    }
}
