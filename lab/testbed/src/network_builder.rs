//! The network under construction while its script runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use hol_base::{BitRate, ByteCount, Duration, QueueLimit};
use hol_network::{
    Discipline, EventSpec, LanSpec, LinkChange, LinkDirection, LinkSpec, LossSpec, NetworkSpec, Overrides,
};
use hol_wire::Address;

use crate::queue::Queue;
use crate::tcl::{WordError, error_at};

/// The default limit of a queue in ns and Emulab, in packets.
pub(crate) const DEFAULT_QUEUE: u64 = 50;

/// Maximum number of changes of links during a run.
pub(crate) const MAX_EVENTS: usize = 200_000;

/// The nodes and links that the script has created so far, in their order.
#[derive(Debug, Default)]
pub(crate) struct NetworkBuilder {
    pub nodes: Vec<Node>,
    pub segments: Vec<Segment>,
    /// For each pair of nodes, the last link from the first to the second: the index of the segment, and of its
    /// direction towards the second node.
    links: BTreeMap<[usize; 2], (usize, usize)>,
    /// Indices of the links and LANs of each node that has any.
    segments_by_node: BTreeMap<usize, Vec<usize>>,
    /// The addresses that the script assigns.
    given_addresses: BTreeSet<Ipv4Addr>,
    /// The changes of links and LANs during the run.
    events: Vec<Event>,
    /// Position in the script of the command that makes ns recompute routes when a link goes down.
    pub rerouting_command: Option<usize>,
    /// The error to report if there are several routes between two nodes, because ns might choose another route than
    /// hol.
    several_routes_error: Option<WordError>,
    /// Position in the script of a command that creates a one-way link between two nodes that already have a link.
    second_link_command: Option<usize>,
}

/// A change of a link or LAN, or of one direction of a link, during the run.
#[derive(Debug)]
pub(crate) struct Event {
    /// When the event happens, from the start of the simulation.
    pub at: Duration,
    /// Index of the link or LAN.
    pub segment: usize,
    pub line: Option<usize>,
    pub change: LinkChange,
}

#[derive(Debug)]
/// A node of the network that the script builds.
pub(crate) struct Node {
    pub name: Option<String>,
    /// Position in the script at which the node is created.
    pub at: usize,
}

/// A link or a LAN.
#[derive(Debug)]
pub(crate) struct Segment {
    pub name: Option<String>,
    /// Indices of the nodes on the segment.
    pub members: Vec<usize>,
    /// Addresses of the members; `None` where the script assigns none.
    pub addresses: Vec<Option<Ipv4Addr>>,
    /// The two directions of a link: first the one that starts at its first member. Or the single direction of a LAN.
    pub lines: Vec<SegmentDirection>,
    /// Position in the script of the command that created the only direction of the link so far; `None` once it has
    /// both.
    pub single_direction_at: Option<usize>,
}

/// One direction of a link; or a LAN, which has only one.
#[derive(Debug, Clone)]
pub(crate) struct SegmentDirection {
    pub rate: BitRate,
    pub delay: Duration,
    pub loss: LossSpec,
    pub queue: Queue,
    /// Whether an error model of ns determines the losses.
    pub has_error_model: bool,
}

/// Returns the name without characters that are special in Tcl.
pub(crate) fn plain_name(text: &str) -> String {
    text.replace(|c: char| "{}()[]\\$\",;".contains(c) || c.is_whitespace() || c.is_control(), "-")
}

impl Segment {
    /// Returns whether the segment is a link.
    pub fn is_link(&self) -> bool {
        self.lines.len() == 2
    }
}

impl NetworkBuilder {
    /// Records an error that matters only if there are several routes between two nodes.
    pub fn refuse_if_several_routes(&mut self, at: usize, problem: &str) {
        self.several_routes_error.get_or_insert_with(|| WordError { at, problem: problem.to_owned() });
    }

    /// Adds a segment, and returns its index.
    pub fn add_segment(&mut self, members: Vec<usize>, lines: Vec<SegmentDirection>) -> usize {
        let index = self.segments.len();
        for member in &members {
            self.segments_by_node.entry(*member).or_default().push(index);
        }
        if let ([one, other], 2) = (&members[..], lines.len()) {
            self.links.insert([*one, *other], (index, 0));
            self.links.insert([*other, *one], (index, 1));
        }
        let addresses = vec![None; members.len()];
        self.segments.push(Segment { name: None, members, addresses, lines, single_direction_at: None });
        index
    }

    /// Returns the index of the last link from one node to another, and the index of its direction towards the second.
    pub fn find_link(&self, ends: [usize; 2]) -> Option<(usize, usize)> {
        self.links.get(&ends).copied()
    }

    /// Returns the indices of the links and LANs of a node.
    pub fn segments_of(&self, node: usize) -> &[usize] {
        self.segments_by_node.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Assigns an address to a member of a segment; returns false if the address is already in use.
    pub fn set_address(&mut self, segment: usize, member: usize, address: Ipv4Addr) -> bool {
        if self.segments[segment].addresses[member] == Some(address) {
            return true;
        }
        let is_free = self.given_addresses.insert(address);
        if is_free && let Some(former) = self.segments[segment].addresses[member].replace(address) {
            self.given_addresses.remove(&former);
        }
        is_free
    }

    /// Adds a change during the run; returns false if there are too many changes.
    pub fn add_event(&mut self, event: Event) -> bool {
        let has_room = self.events.len() < MAX_EVENTS;
        if has_room {
            self.events.push(event);
        }
        has_room
    }

    /// Records that the script creates a one-way link between two nodes that already have a link.
    pub fn note_second_link(&mut self, at: usize, members: [usize; 2]) {
        if self.links.contains_key(&members) {
            self.second_link_command.get_or_insert(at);
        }
    }

    /// Removes each link that a later link between the same nodes replaces. In ns (ns-lib.tcl), `link_(0:1)` is the
    /// last link from node 0 to node 1.
    fn remove_replaced_links(&mut self) {
        let ends =
            |own: &Segment| own.is_link().then(|| own.members.iter().copied().collect::<BTreeSet<_>>());
        let all: Vec<Option<BTreeSet<usize>>> = self.segments.iter().map(ends).collect();
        let last: BTreeMap<&BTreeSet<usize>, usize> =
            all.iter().enumerate().filter_map(|(index, own)| Some((own.as_ref()?, index))).collect();
        let is_kept = |index: usize| all[index].as_ref().is_none_or(|own| last[own] == index);
        let kept: Vec<usize> = (0..self.segments.len()).filter(|index| is_kept(*index)).collect();
        self.events.retain_mut(|event| {
            let index = kept.binary_search(&event.segment);
            event.segment = index.unwrap_or_default();
            index.is_ok()
        });
        let mut index = 0..;
        self.segments.retain(|_| index.next().is_some_and(|index| kept.binary_search(&index).is_ok()));
    }

    /// Returns whether there is only one route between any two nodes.
    fn is_tree(&self) -> bool {
        let edges: usize = self.segments.iter().map(|segment| segment.members.len().saturating_sub(1)).sum();
        edges < self.nodes.len()
    }

    /// Completes the network, with default names and addresses.
    pub fn finish(mut self, is_emulab: bool) -> Result<NetworkSpec, WordError> {
        if !is_emulab {
            self.remove_replaced_links();
        }
        if self.nodes.is_empty() {
            return error_at(0, "the script describes no nodes; start with set server [$ns node]");
        }
        self.name_all();
        let names: Vec<String> =
            self.nodes.iter().map(|node| node.name.clone().unwrap_or_default()).collect();
        let connected: BTreeSet<usize> =
            self.segments.iter().flat_map(|segment| segment.members.iter().copied()).collect();
        for (index, node) in self.nodes.iter().enumerate() {
            if !connected.contains(&index) {
                let problem =
                    format!("node \"{}\" is on no link or LAN; connect it or remove it", names[index]);
                return error_at(node.at, problem);
            }
        }
        if let Some(at) = self.segments.iter().find_map(|segment| segment.single_direction_at) {
            let problem = "this link has one direction, but links need two; add a simplex-link for the other";
            return error_at(at, problem);
        }
        if let Some(problem) = self.several_routes_error.take().filter(|_| !self.is_tree()) {
            return Err(problem);
        }
        if let Some(at) = self.second_link_command.filter(|_| !is_emulab) {
            let problem =
                "two links between the same nodes: ns uses the last in each direction; remove the others";
            return error_at(at, problem);
        }
        let is_outage = |event: &&Event| event.change == LinkChange::Down;
        if let Some(at) = self.rerouting_command.filter(|_| self.events.iter().any(|event| is_outage(&event)))
        {
            return error_at(at, "only static routes are supported, even when a link goes down; use Static");
        }
        let mut network = NetworkSpec {
            events: self.event_specs(),
            queue: QueueLimit::Packets(DEFAULT_QUEUE),
            // ns and dummynet count IP packets.
            overhead: ByteCount(0),
            ..NetworkSpec::default()
        };
        // Links come before LANs to get the first subnets.
        self.segments.sort_by_key(|segment| !segment.is_link());
        let addresses = self.addresses();
        for (segment, addresses) in self.segments.iter().zip(addresses) {
            let members = segment.members.iter().map(|member| names[*member].clone());
            match &segment.lines[..] {
                [up, down] => {
                    let lines = [up, down].map(|line| line.overrides(is_emulab));
                    network.links.push(link(segment, members, addresses, lines));
                }
                lines => {
                    network.lans.push(lan(
                        segment,
                        members.collect(),
                        addresses,
                        lines[0].overrides(is_emulab),
                    ));
                }
            }
        }
        network.nodes = names;
        Ok(network)
    }

    /// Returns the changes during the run, in order of time.
    fn event_specs(&self) -> Vec<EventSpec> {
        let spec = |Event { at, segment, line, change }: &Event| {
            let direction = match line {
                None => LinkDirection::Both,
                Some(0) => LinkDirection::Up,
                Some(_) => LinkDirection::Down,
            };
            let link = self.segments[*segment].name.clone();
            let mut spec = EventSpec {
                at: *at,
                direction,
                path: None,
                link,
                down: None,
                rate: None,
                loss: None,
                delay: None,
            };
            match change.clone() {
                LinkChange::Down => spec.down = Some(true),
                LinkChange::Up => spec.down = Some(false),
                LinkChange::Rate(rate) => spec.rate = Some(rate),
                LinkChange::Loss(loss) => spec.loss = Some(loss),
                LinkChange::Delay(delay) => spec.delay = Some(delay),
            }
            spec
        };
        let mut specs: Vec<EventSpec> = self.events.iter().map(spec).collect();
        specs.sort_by_key(|event| event.at);
        specs
    }

    /// Gives a name to each node, link or LAN without one, and appends a number to duplicate names.
    fn name_all(&mut self) {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        // The next number to try for each name; all smaller numbers are taken.
        let mut begun: BTreeMap<String, usize> = BTreeMap::new();
        let nodes = self.nodes.iter_mut().map(|node| (&mut node.name, "node"));
        let segments = self.segments.iter_mut().map(|segment| {
            let kind = if segment.is_link() { "link" } else { "lan" };
            (&mut segment.name, kind)
        });
        for (name, kind) in nodes.chain(segments) {
            let own = name.clone();
            let numbered = |number: usize| match &own {
                Some(name) if number == 0 => name.clone(),
                Some(name) => format!("{name}-{}", number + 1),
                None => format!("{kind}{number}"),
            };
            let next = begun.entry(own.clone().unwrap_or_else(|| kind.to_owned())).or_default();
            let free = (*next..).find(|number| !taken.contains(&numbered(*number)));
            let free = free.expect("some number is unused");
            *next = free + 1;
            let free = numbered(free);
            taken.insert(free.clone());
            *name = Some(free);
        }
    }

    /// Assigns addresses as Emulab does: subnets from 10.1.1.0/24 on, and host numbers from 2 on. Addresses in the
    /// script take precedence.
    fn addresses(&self) -> Vec<Vec<Address>> {
        // The addresses of the script, then also those that are assigned here.
        let mut given: BTreeSet<Ipv4Addr> =
            self.segments.iter().flat_map(|s| s.addresses.iter().flatten().copied()).collect();
        let subnet = |address: &Ipv4Addr| address.octets()[..3].to_vec();
        let numbered =
            (257_u32..).map(|number| number.to_be_bytes()).map(|[_, a, b, c]| [10 + a, b, c].to_vec());
        let nets: BTreeSet<Vec<u8>> = given.iter().map(subnet).collect();
        let mut free = numbered.filter(|net| !nets.contains(net));
        let mut all = Vec::new();
        for segment in &self.segments {
            let own = segment.addresses.iter().flatten().next().map(subnet);
            let net = own.or_else(|| free.next()).expect("subnets suffice for a script");
            let hosts = (2..=254).map(|host| Ipv4Addr::new(net[0], net[1], net[2], host));
            let mut hosts = hosts.filter(|address| !given.contains(address));
            let address = |own: &Option<Ipv4Addr>| own.or_else(|| hosts.next());
            let own: Vec<Ipv4Addr> = segment.addresses.iter().filter_map(address).collect();
            given.extend(&own);
            all.push(own.into_iter().map(Address::from).collect());
        }
        all
    }
}

fn link(
    segment: &Segment,
    mut members: impl Iterator<Item = String>,
    addresses: Vec<Address>,
    [up, down]: [Overrides; 2],
) -> LinkSpec {
    let mut end = || members.next().unwrap_or_default();
    let mut link = LinkSpec { addresses, ..LinkSpec::between(end(), end()) };
    link.name = segment.name.clone();
    link.down = differences(&down, &up);
    (link.rate, link.delay, link.loss, link.queue, link.discipline) =
        (up.rate, up.delay, up.loss, up.queue, up.discipline);
    link
}

fn lan(segment: &Segment, nodes: Vec<String>, addresses: Vec<Address>, overrides: Overrides) -> LanSpec {
    let mut lan = LanSpec { name: segment.name.clone(), addresses, ..LanSpec::of(nodes) };
    (lan.rate, lan.delay, lan.loss, lan.queue, lan.discipline) =
        (overrides.rate, overrides.delay, overrides.loss, overrides.queue, overrides.discipline);
    lan
}

impl SegmentDirection {
    /// Returns the settings of a direction: its rate and delay, and all other settings that differ from the defaults.
    fn overrides(&self, is_emulab: bool) -> Overrides {
        let discipline = self.queue.discipline(is_emulab, self.rate, self.delay);
        Overrides {
            rate: Some(self.rate),
            delay: Some(self.delay),
            loss: Some(self.loss.clone()).filter(|loss| *loss != LossSpec::default()),
            queue: Some(self.queue.limit(is_emulab))
                .filter(|limit| *limit != QueueLimit::Packets(DEFAULT_QUEUE)),
            discipline: Some(discipline).filter(|discipline| *discipline != Discipline::DropTail),
            ..Overrides::default()
        }
    }
}

/// Returns the settings of a direction that differ from those of the other direction; `None` if all are equal.
fn differences(own: &Overrides, other: &Overrides) -> Option<Overrides> {
    fn changed_value<T: PartialEq + Clone>(own: &Option<T>, other: &Option<T>, usual: T) -> Option<T> {
        let own = own.clone().unwrap_or_else(|| usual.clone());
        (own != other.clone().unwrap_or(usual)).then_some(own)
    }
    let overrides = Overrides {
        rate: own.rate.filter(|_| own.rate != other.rate),
        delay: own.delay.filter(|_| own.delay != other.delay),
        loss: changed_value(&own.loss, &other.loss, LossSpec::default()),
        queue: changed_value(&own.queue, &other.queue, QueueLimit::Packets(DEFAULT_QUEUE)),
        discipline: changed_value(&own.discipline, &other.discipline, Discipline::DropTail),
        ..Overrides::default()
    };
    (overrides != Overrides::default()).then_some(overrides)
}
