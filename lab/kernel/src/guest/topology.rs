//! The network of a run: a namespace for each node, and a router for each link or LAN, which alone delays and drops packets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_base::Seed;
use hol_network::{AddressChange, InterfaceId, Ip, LinkId, Medium, NodeId, PathSpec, RouteChange, Segment};
use hol_scenario::LinkDirectionCounters;
use nix::net::if_::if_nametoindex;

use super::attachment::{Attachment, AttachmentChange};
use super::namespace::{self, Namespace};
use super::netlink::RoutingSocket;
use super::path_manager::PathManager;
use super::qdisc_chain::{Chain, Detour, InterfaceHandle};
use super::queue_sampler::LinkQueueStatistics;
use super::reroute::Reroute;
use super::route::{self, BEHIND_LAN_TABLE, Interface, MAIN_TABLE};
use super::{GuestError, offload};
use crate::netem::BuildableNetwork;

/// The namespaces of a run, and their connections.
#[derive(Debug)]
pub(super) struct Topology {
    /// The network namespaces of the nodes, by [`NodeId`].
    nodes: Vec<Namespace>,
    /// The nodes whose packets are captured and counted.
    ends: Vec<NodeId>,
    /// The interfaces of the nodes, by [`InterfaceId`].
    cables: Vec<Cable>,
    routers: Vec<Router>,
    /// The link directions, by [`LinkId`].
    chains: Vec<Chain>,
}

/// An interface of a node, and the router's interface at the other end of the veth pair.
#[derive(Debug)]
struct Cable {
    node: NodeId,
    address: IpAddr,
    /// The node's interface, at one end of the veth pair.
    outer: Interface,
    outer_index: u32,
    /// The router's interface, at the other end of the veth pair.
    near: Interface,
    near_index: u32,
}

/// The namespace that emulates a link or a LAN.
#[derive(Debug)]
struct Router {
    namespace: Namespace,
    /// The two interfaces at the entrance and the exit of a LAN's shared link; `None` for a link.
    shared: Option<(u32, Interface)>,
}

/// The numbers of packets that entered and left each link direction.
pub(super) type PacketCounts = Vec<(u64, u64)>;

/// Builds the network of `plan`; the links only delay packets at first. `seed` is the seed of the run, and `ends` are
/// the nodes whose packets are captured.
pub(super) fn build(plan: &BuildableNetwork, seed: Seed, ends: &[&str]) -> Result<Topology, GuestError> {
    let network = &plan.network;
    let nodes =
        network.node_names().iter().map(|_| Namespace::new(network.ip())).collect::<Result<_, _>>()?;
    let end = |name| network.node(name).ok_or_else(|| format!("the network has no node {name}"));
    let ends = ends.iter().map(|name| end(name)).collect::<Result<_, _>>()?;
    let (cables, routers, chains) = (Vec::new(), Vec::new(), Vec::new());
    let mut topology = Topology { nodes, ends, cables, routers, chains };
    for segment in network.segments() {
        topology.add_segment(plan, segment, seed)?;
    }
    for node in 0..network.node_count() {
        topology.add_routes(plan, NodeId(node as u16))?;
    }
    topology.add_onward_routes(plan)?;
    Ok(topology)
}

impl Topology {
    /// Returns each interface of the captured nodes: its index in the network, its namespace, and its index in the
    /// kernel.
    pub(super) fn captured_interfaces(&self) -> impl Iterator<Item = (InterfaceId, &Namespace, u32)> {
        let cables = (0..).map(InterfaceId).zip(&self.cables);
        let ends = cables.filter(|(_, cable)| self.ends.contains(&cable.node));
        ends.map(|(id, cable)| (id, self.node(cable.node), cable.outer_index))
    }

    /// Installs the settings of every link, and restarts the random numbers of the links.
    pub(super) fn install_settings(&mut self) -> Result<(), GuestError> {
        self.chains.iter_mut().try_for_each(Chain::install_settings)
    }

    /// Returns the emulation of each link direction, which may change during the run, and removes it from this
    /// value.
    pub(super) fn take_chains(&mut self) -> Vec<Chain> {
        std::mem::take(&mut self.chains)
    }

    /// Returns the queue statistics of each link direction, by its index in the network.
    pub(super) fn queues(&self, plan: &BuildableNetwork) -> Result<Vec<LinkQueueStatistics>, GuestError> {
        let mut link_queues: Vec<Option<LinkQueueStatistics>> = self.chains.iter().map(|_| None).collect();
        let of_routers = self.routers.iter().zip(plan.network.segments());
        let places = of_routers.flat_map(|(router, segment)| {
            let links = match segment.medium {
                Medium::Link { up, down } => vec![up, down],
                Medium::Lan(link) => vec![link],
            };
            links.into_iter().map(move |link| (router, link))
        });
        // Chains are in the order in which their link directions were added, which is not that of `LinkId`s.
        for (chain, (router, link)) in self.chains.iter().zip(places) {
            link_queues[usize::from(link.0)] = Some(chain.queue_statistics(&router.namespace)?);
        }
        Ok(link_queues.into_iter().flatten().collect())
    }

    /// Returns the scheduled moves of nodes during the run, in order of time. Removes the addresses that are added
    /// only later.
    pub(super) fn attachment_changes(
        &self,
        plan: &BuildableNetwork,
        has_mptcp: bool,
    ) -> Result<Vec<AttachmentChange>, GuestError> {
        let moves = plan.network.address_changes().iter().map(|change| {
            let attachment = self.attachment(plan, change)?;
            attachment.remove()?;
            if !change.is_added {
                attachment.add()?;
            }
            let path_manager = has_mptcp.then(PathManager::open).transpose()?;
            Ok(AttachmentChange { at: change.at, is_added: change.is_added, attachment, path_manager })
        });
        moves.collect()
    }

    /// Returns the route changes during the run, in order of time.
    pub(super) fn reroutes(&self, plan: &BuildableNetwork) -> Result<Vec<Reroute>, GuestError> {
        let changes = plan.network.route_changes().iter().map(|RouteChange { at, node, route: way }| {
            let cable = self.cable(way.from);
            self.node(*node).enter()?;
            let (routing, interface, destination) =
                (RoutingSocket::open()?, cable.outer_index, way.destination);
            route::add_neighbour(&routing, interface, destination, cable.near.hardware)?;
            let source = plan.network.addresses(*node)[0];
            Ok(Reroute { at: *at, routing, interface, destination, source })
        });
        changes.collect()
    }

    /// Allows MPTCP connections of a node to have a subflow on each link. If the node `announces_addresses`, it
    /// announces its other addresses to its peers, and which of `paths` are backups. The kernel supports at most eight
    /// subflows.
    pub(super) fn set_up_subflows(
        &self,
        plan: &BuildableNetwork,
        node: NodeId,
        announces_addresses: bool,
        paths: &[PathSpec],
    ) -> Result<(), GuestError> {
        /// Maximum number of subflows of a connection.
        const MAX_SUBFLOWS: u32 = 8;
        self.node(node).enter()?;
        let path_manager = PathManager::open()?;
        path_manager.set_limits(MAX_SUBFLOWS)?;
        let others =
            plan.network.addresses(node).into_iter().enumerate().skip(1).take(MAX_SUBFLOWS as usize - 1);
        let is_backup = |place: usize| paths.get(place).is_some_and(|path| path.backup);
        others
            .filter(|_| announces_addresses)
            .try_for_each(|(place, address)| path_manager.signal(address, is_backup(place)))
    }

    /// Returns the address and routes that the node gets on a link by `change`. Through this link the node reaches all
    /// addresses of the node at the other end, as a host on the Internet does: an association keeps using the address
    /// with which it was established. The link to which a node moves is preferred, as in the model.
    fn attachment(&self, plan: &BuildableNetwork, change: &AddressChange) -> Result<Attachment, GuestError> {
        let of_link = |segment: &Segment| {
            let cables = segment.interfaces.iter().map(|id| self.cable(*id));
            let (own, others): (Vec<_>, Vec<_>) = cables.partition(|cable| cable.address == change.address);
            Some((*own.first()?, *others.first()?))
        };
        let links = self.routers.iter().zip(plan.network.segments());
        let found =
            links.enumerate().find_map(|(place, (router, segment))| Some((place, router, of_link(segment)?)));
        let (place, router, (own, other)) =
            found.ok_or("an address that is added or removed during the run belongs to no link")?;
        let peers = plan.network.addresses(other.node);
        for peer in peers.iter().filter(|peer| **peer != other.address) {
            route::add_route(
                &router.namespace.routing,
                MAIN_TABLE,
                0,
                other.near_index,
                *peer,
                other.outer.hardware,
            )?;
        }
        self.node(own.node).enter()?;
        Ok(Attachment {
            routing: RoutingSocket::open()?,
            interface: own.outer_index,
            address: own.address,
            table: route::source_table(place),
            peers,
            router: own.near.hardware,
            metric: if change.is_added { 1 } else { 2 },
        })
    }

    /// Returns the number of packets that the captured nodes have sent.
    pub(super) fn sent_packets(&self) -> Result<u64, GuestError> {
        let mut total = 0;
        for cable in self.cables.iter().filter(|cable| self.ends.contains(&cable.node)) {
            self.node(cable.node).enter()?;
            total += namespace::interface_packets(&cable.outer.name).map_or(0, |(_, sent)| sent);
        }
        Ok(total)
    }

    /// Returns the numbers of packets of each link direction so far.
    pub(super) fn packet_counts(&self, plan: &BuildableNetwork) -> Result<PacketCounts, GuestError> {
        let mut counts = vec![(0, 0); plan.links.len()];
        for (router, segment) in self.routers.iter().zip(plan.network.segments()) {
            router.namespace.enter()?;
            for (place, interface) in segment.interfaces.iter().enumerate() {
                let near = &self.cable(*interface).near.name;
                let (received, sent) =
                    namespace::interface_packets(near).ok_or("an interface of a router is missing")?;
                let (into, out_of) = match segment.medium {
                    Medium::Link { up, down } if place == 0 => (up, down),
                    Medium::Link { up, down } => (down, up),
                    Medium::Lan(link) => (link, link),
                };
                counts[usize::from(into.0)].0 += received;
                counts[usize::from(out_of.0)].1 += sent;
            }
        }
        Ok(counts)
    }

    /// Returns the numbers of packets that each link direction carried and lost since `before`; packets in flight count as lost.
    pub(super) fn link_counters(
        &self,
        plan: &BuildableNetwork,
        before: &PacketCounts,
    ) -> Result<Vec<LinkDirectionCounters>, GuestError> {
        let counted = self.packet_counts(plan)?;
        let links = plan.links.iter().zip(before).zip(counted).map(|((link, before), now)| {
            let (sent, arrived) = (now.0 - before.0, now.1 - before.1);
            LinkDirectionCounters { name: link.name.clone(), sent, dropped: sent.saturating_sub(arrived) }
        });
        Ok(links.collect())
    }

    /// Returns the namespace of a node.
    pub(super) fn node(&self, node: NodeId) -> &Namespace {
        &self.nodes[usize::from(node.0)]
    }

    fn cable(&self, interface: InterfaceId) -> &Cable {
        &self.cables[usize::from(interface.0)]
    }

    fn add_segment(
        &mut self,
        plan: &BuildableNetwork,
        segment: &Segment,
        seed: Seed,
    ) -> Result<(), GuestError> {
        let (number, ip) = (self.routers.len() + 1, plan.network.ip());
        let namespace = Namespace::new(ip)?;
        for (host, id) in (1..).zip(&segment.interfaces) {
            let interface = plan.network.interfaces()[usize::from(id.0)];
            let node = &self.nodes[usize::from(interface.node.0)];
            let (near, outer) = (
                interface_on_segment("port", number, host, 1),
                interface_on_segment("link", number, host, 0),
            );
            let outer = Interface { name: format!("link{number}"), ..outer };
            namespace.enter()?;
            route::create_veth_pair(&namespace.routing, &near, node, &outer, plan.mtu)?;
            let near_index = bring_up(&namespace, ip, &near)?;
            node.enter()?;
            let outer_index = bring_up(node, ip, &outer)?;
            route::add_address(&node.routing, outer_index, interface.address)?;
            let (node, address) = (interface.node, interface.address);
            self.cables.push(Cable { node, address, outer, outer_index, near, near_index });
        }
        let ends = segment.interfaces.iter().map(|id| self.cable(*id));
        let ends: Vec<_> = ends.map(|end| (self.node(end.node), end.outer_index, end.near_index)).collect();
        let link = |id: LinkId, start: InterfaceHandle, end: InterfaceHandle| {
            let link = plan.links[usize::from(id.0)].clone();
            let detour = link.has_entry_stages().then(|| detour(&namespace, plan, id)).transpose()?;
            let stops = link.changing.stops;
            let mut chain = Chain::new(link, seed, start, end, detour)?;
            if stops {
                chain.open_wakers(&namespace)?;
            }
            Ok::<_, GuestError>(chain)
        };
        let (mut chains, mut shared) = (Vec::new(), None);
        match segment.medium {
            Medium::Link { up, down } => {
                for (id, (node, outer, near)) in [(up, ends[1]), (down, ends[0])] {
                    chains.push(link(
                        id,
                        InterfaceHandle::new(&namespace, near)?,
                        InterfaceHandle::new(node, outer)?,
                    )?);
                }
            }
            Medium::Lan(id) => {
                let (before, beyond) = (
                    interface_on_segment("before", number, 0, 2),
                    interface_on_segment("beyond", number, 0, 3),
                );
                namespace.enter()?;
                route::create_veth_pair(&namespace.routing, &before, &namespace, &beyond, plan.mtu)?;
                let (start, end) = (bring_up(&namespace, ip, &before)?, bring_up(&namespace, ip, &beyond)?);
                route::use_lan_table(&namespace.routing, ip, &beyond)?;
                chains.push(link(
                    id,
                    InterfaceHandle::new(&namespace, start)?,
                    InterfaceHandle::new(&namespace, end)?,
                )?);
                shared = Some((start, beyond));
            }
        }
        self.chains.extend(chains);
        self.routers.push(Router { namespace, shared });
        Ok(())
    }

    /// Adds the routes of a node: packets to any address go to the router of the segment that comes next on the
    /// way.
    fn add_routes(&self, plan: &BuildableNetwork, node: NodeId) -> Result<(), GuestError> {
        let routing = &self.node(node).routing;
        for way in plan.network.routes(node) {
            let cable = self.cable(way.from);
            route::add_route(
                routing,
                MAIN_TABLE,
                0,
                cable.outer_index,
                way.destination,
                cable.near.hardware,
            )?;
        }
        Ok(())
    }

    /// Adds the routes to the next nodes to each router. On a LAN these routes lead through the shared link. The
    /// routes that packets take after a change of route are included.
    fn add_onward_routes(&self, plan: &BuildableNetwork) -> Result<(), GuestError> {
        let network = &plan.network;
        for (router, segment) in self.routers.iter().zip(network.segments()) {
            let ways = (0..network.node_count()).flat_map(|node| network.routes(NodeId(node as u16)));
            let ways = ways.chain(network.route_changes().iter().map(|change| &change.route));
            let here = ways.filter(|way| segment.interfaces.contains(&way.from));
            // On a LAN several nodes have the same route.
            let onward: BTreeMap<_, _> = here.map(|way| (way.destination, way.to)).collect();
            let routing = &router.namespace.routing;
            for (destination, to) in onward {
                let next = self.cable(to);
                let table = if router.shared.is_some() { BEHIND_LAN_TABLE } else { MAIN_TABLE };
                route::add_route(routing, table, 0, next.near_index, destination, next.outer.hardware)?;
                if let Some((before, beyond)) = &router.shared {
                    route::add_route(routing, MAIN_TABLE, 0, *before, destination, beyond.hardware)?;
                }
            }
        }
        Ok(())
    }
}

/// Creates a veth pair within a router. One of its interfaces has the queue of a link direction.
fn detour(router: &Namespace, plan: &BuildableNetwork, link: LinkId) -> Result<Detour, GuestError> {
    let ends = [("queue", 4), ("back", 5)].map(|(name, side)| {
        let name = format!("{name}{}", link.0);
        Interface { name, ..interface_on_segment("", link.0.into(), 0, side) }
    });
    let [queue, back] = &ends;
    router.enter()?;
    route::create_veth_pair(&router.routing, queue, router, back, plan.mtu)?;
    let [queue, back] =
        [queue, back].map(|end| InterfaceHandle::new(router, bring_up(router, plan.network.ip(), end)?));
    Ok(Detour { queue: queue?, back: back? })
}

/// Returns an interface on segment `number`; `side` distinguishes several interfaces of one host on the segment.
fn interface_on_segment(name: &str, number: usize, host: u8, side: u8) -> Interface {
    let [.., high, low] = number.to_be_bytes();
    // Locally administered addresses.
    Interface { name: format!("{name}{host}"), hardware: [2, 0, side, high, low, host] }
}

/// Brings up an interface of this thread's namespace, with all offloads disabled; returns its index.
fn bring_up(here: &Namespace, ip: Ip, interface: &Interface) -> Result<u32, GuestError> {
    offload::turn_off(&interface.name)?;
    let index = if_nametoindex(interface.name.as_str())?;
    route::bring_up(&here.routing, ip, index)?;
    Ok(index)
}
