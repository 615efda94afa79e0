//! Static routing by the fewest hops. Of several equally short routes, the one whose first segment comes
//! first in [`Topology::segments`] is used.

use std::collections::VecDeque;

use crate::error::NetworkError;
use crate::identifier::{InterfaceId, NodeId};
use crate::topology::{Medium, Route, Segment, Topology};

/// Maximum number of routes, which limits their memory: each route from a node to an address takes 24 octets.
const MAX_ROUTES: usize = 20_000_000;

/// Returns for each node the next hop to every address of every other node.
pub(crate) fn routes(topology: &Topology) -> Result<Vec<Vec<Route>>, NetworkError> {
    let (nodes, addresses) = (topology.node_count(), topology.interfaces.len());
    if nodes * addresses > MAX_ROUTES {
        return Err(NetworkError::TooManyRoutes { nodes, addresses, max: MAX_ROUTES });
    }
    let attachments = attachments(topology);
    let mut routes = vec![Vec::new(); nodes];
    for target in &topology.segments {
        let distances = distances(topology, &attachments, target);
        for (index, own_routes) in routes.iter_mut().enumerate() {
            let node = NodeId(index as u16);
            let Some(distance) = distances[index] else {
                let to = topology.node_name(owner(topology, target.interfaces[0])).to_owned();
                return Err(NetworkError::NoRoute { from: topology.node_name(node).to_owned(), to });
            };
            let onward =
                (distance > 0).then(|| next_hop(topology, &attachments[index], &distances, distance));
            for destination in &target.interfaces {
                if owner(topology, *destination) != node {
                    let (segment, from, to) = onward
                        .unwrap_or_else(|| (target, interface_of(topology, target, node), *destination));
                    let address = topology.interfaces[usize::from(destination.0)].address;
                    let link = match segment.medium {
                        Medium::Link { up, .. } if from == segment.interfaces[0] => up,
                        Medium::Link { down, .. } => down,
                        Medium::Lan(link) => link,
                    };
                    own_routes.push(Route { destination: address, link, from, to });
                }
            }
        }
    }
    for (index, own_routes) in routes.iter_mut().enumerate() {
        if own_routes.is_empty() {
            return Err(NetworkError::IsolatedNode(topology.node_name(NodeId(index as u16)).to_owned()));
        }
        own_routes.sort_unstable_by_key(|route| route.destination);
    }
    Ok(routes)
}

/// A segment to which a node is attached, and the node's interface on it.
type Attachment<'t> = (&'t Segment, InterfaceId);

/// Returns for each node its segments and its interface on each, in the order of [`Topology::segments`].
fn attachments(topology: &Topology) -> Vec<Vec<Attachment<'_>>> {
    let mut attachments = vec![Vec::new(); topology.node_count()];
    for segment in &topology.segments {
        for interface in &segment.interfaces {
            attachments[usize::from(owner(topology, *interface).0)].push((segment, *interface));
        }
    }
    attachments
}

/// Returns how many hops each node is from `target`; `None` for unreachable nodes.
fn distances(topology: &Topology, attachments: &[Vec<Attachment<'_>>], target: &Segment) -> Vec<Option<u32>> {
    let mut distances = vec![None; topology.node_count()];
    let mut reached: VecDeque<NodeId> = VecDeque::new();
    for interface in &target.interfaces {
        let node = owner(topology, *interface);
        distances[usize::from(node.0)] = Some(0);
        reached.push_back(node);
    }
    while let Some(node) = reached.pop_front() {
        let next = distances[usize::from(node.0)].map(|distance| distance + 1);
        for (segment, _) in &attachments[usize::from(node.0)] {
            for interface in &segment.interfaces {
                let neighbour = owner(topology, *interface);
                let distance = &mut distances[usize::from(neighbour.0)];
                if distance.is_none() {
                    *distance = next;
                    reached.push_back(neighbour);
                }
            }
        }
    }
    distances
}

/// Returns the first segment of a node that has a neighbour one hop nearer to the target, and the interfaces at both
/// ends.
fn next_hop<'t>(
    topology: &Topology,
    attachments: &[Attachment<'t>],
    distances: &[Option<u32>],
    distance: u32,
) -> (&'t Segment, InterfaceId, InterfaceId) {
    let nearer =
        |interface: &InterfaceId| distances[usize::from(owner(topology, *interface).0)] == Some(distance - 1);
    let mut ways = attachments
        .iter()
        .filter_map(|(segment, own)| Some((*segment, *own, *segment.interfaces.iter().find(|i| nearer(i))?)));
    ways.next().expect("a node at a distance has a neighbour that is nearer")
}

fn owner(topology: &Topology, interface: InterfaceId) -> NodeId {
    topology.interfaces[usize::from(interface.0)].node
}

fn interface_of(topology: &Topology, segment: &Segment, node: NodeId) -> InterfaceId {
    let own = segment.interfaces.iter().find(|interface| owner(topology, **interface) == node);
    *own.expect("the node is on the segment")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_wire::Address;

    fn hops(topology: &Topology, from: &str, to: Address) -> Vec<String> {
        let names = topology.interface_names();
        let mut node = topology.node(from).unwrap();
        let mut hops = Vec::new();
        while !topology.addresses(node).contains(&to) {
            let routes = &topology.routes[usize::from(node.0)];
            let route = routes.iter().find(|route| route.destination == to).unwrap();
            hops.push(names[usize::from(route.to.0)].clone());
            node = owner(topology, route.to);
        }
        hops
    }

    #[test]
    fn route_with_the_fewest_hops_is_used() {
        let spec = "nodes = ['client', 'a', 'b', 'c', 'server']
            links = [{ from = 'client', to = 'a' }, { from = 'a', to = 'b' }, { from = 'b', to = 'server' },
                     { from = 'client', to = 'c' }, { from = 'c', to = 'server' }]";
        let topology = Topology::new(&toml::from_str(spec).unwrap()).unwrap();
        assert_eq!(hops(&topology, "client", hol_wire::ipv4(10, 0, 5, 2)), ["c:4", "server:5"]);
        // The server's other address is on another subnet, and as in IP the route leads to that subnet.
        assert_eq!(hops(&topology, "client", hol_wire::ipv4(10, 0, 3, 2)), ["a:1", "b:2", "server:3"]);
        assert_eq!(hops(&topology, "b", hol_wire::ipv4(10, 0, 1, 1)), ["a:2", "client:1"]);
    }

    #[test]
    fn every_pair_on_a_lan_is_one_hop() {
        let spec =
            "nodes = ['client', 'server', 'other']\nlans = [{ nodes = ['other', 'server', 'client'] }]";
        let topology = Topology::new(&toml::from_str(spec).unwrap()).unwrap();
        for from in ["client", "server", "other"] {
            for host in 1..=3 {
                assert!(hops(&topology, from, hol_wire::ipv4(10, 0, 1, host)).len() <= 1);
            }
        }
    }

    #[test]
    fn equal_routes_use_the_first_segment_in_the_table() {
        let spec = "nodes = ['client', 'a', 'b', 'server']
            links = [{ from = 'client', to = 'b' }, { from = 'client', to = 'a' }]
            lans = [{ nodes = ['a', 'b', 'server'] }]";
        let topology = Topology::new(&toml::from_str(spec).unwrap()).unwrap();
        assert_eq!(hops(&topology, "client", hol_wire::ipv4(10, 0, 3, 3)), ["b:1", "server:3"]);
    }

    fn star(spokes: usize) -> crate::NetworkSpec {
        let nodes: Vec<String> =
            std::iter::once("hub".to_owned()).chain((0..spokes).map(|n| format!("n{n}"))).collect();
        let links =
            nodes[1..].iter().map(|node| crate::LinkSpec::between(node.clone(), "hub".to_owned())).collect();
        crate::NetworkSpec { nodes, links, ..crate::NetworkSpec::default() }
    }

    #[test]
    fn star_that_needs_too_many_routes_is_refused() {
        let topology = Topology::new(&star(1200)).unwrap();
        assert_eq!(topology.path(topology.node("n7").unwrap(), topology.node("n1100").unwrap()).len(), 2);
        let problem = Topology::new(&star(4000)).unwrap_err().to_string();
        assert!(
            problem.contains("4001 nodes with 8000 addresses need more than 20000000 routes"),
            "{problem}"
        );
    }
}
