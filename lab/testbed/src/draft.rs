//! The network while its script runs, and the resulting specification.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use hol_base::{BitRate, ByteCount, Duration, QueueLimit, Ratio};
use hol_network::{Discipline, LanSpec, LinkSpec, LossSpec, NetworkSpec, Overrides, RedSpec};
use hol_wire::Address;

use crate::tcl::{Complaint, complain};

/// The default queue of ns and Emulab, in packets.
pub(crate) const DEFAULT_QUEUE: u64 = 50;

/// Nodes and links, in the order of the script.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub nodes: Vec<Node>,
    pub segments: Vec<Segment>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub name: Option<String>,
    /// Its position in the script.
    pub at: usize,
}

/// A link or a LAN.
#[derive(Debug)]
pub(crate) struct Segment {
    pub name: Option<String>,
    /// By index into the nodes.
    pub members: Vec<usize>,
    /// By member, if given in the script.
    pub addresses: Vec<Option<Ipv4Addr>>,
    /// A link's two directions, the first away from its first member; or the single line of a LAN.
    pub lines: Vec<Line>,
}

/// One direction of a link, or a LAN.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub rate: BitRate,
    pub delay: Duration,
    pub loss: Ratio,
    pub queue: Queue,
}

/// The attributes of a queue, as ns counts them.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub limit: u64,
    pub in_bytes: bool,
    pub red: bool,
    pub gentle: bool,
    pub min: f64,
    pub max: f64,
    pub weight: f64,
    /// The inverse of the greatest probability of an early drop.
    pub linterm: f64,
    pub packet: u64,
}

impl Default for Queue {
    fn default() -> Self {
        let (red, gentle, in_bytes, limit) = (false, false, false, DEFAULT_QUEUE);
        Self { limit, in_bytes, red, gentle, min: 5.0, max: 15.0, weight: 0.002, linterm: 10.0, packet: 500 }
    }
}

/// Returns a name without characters special to Tcl.
pub(crate) fn plain_name(text: &str) -> String {
    text.replace(|c: char| "{}()[]\\$\",;".contains(c) || c.is_whitespace() || c.is_control(), "-")
}

impl Segment {
    pub fn is_link(&self) -> bool {
        self.lines.len() == 2
    }
}

impl Draft {
    /// Completes the network, with default names and addresses.
    pub fn finish(mut self) -> Result<NetworkSpec, Complaint> {
        if self.nodes.is_empty() {
            return complain(0, "the script describes no nodes; begin with set server [$ns node]");
        }
        self.name_all();
        let names: Vec<String> =
            self.nodes.iter().map(|node| node.name.clone().unwrap_or_default()).collect();
        let connected: BTreeSet<usize> =
            self.segments.iter().flat_map(|segment| segment.members.iter().copied()).collect();
        for (index, node) in self.nodes.iter().enumerate() {
            if !connected.contains(&index) {
                let problem =
                    format!("node \"{}\" is on no link or LAN; connect it or leave it out", names[index]);
                return complain(node.at, problem);
            }
        }
        let mut network = NetworkSpec {
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
                [up, down] => network.links.push(link(segment, members, addresses, [up, down])),
                lines => network.lans.push(lan(segment, members.collect(), addresses, &lines[0])),
            }
        }
        network.nodes = names;
        Ok(network)
    }

    /// Names unnamed objects, and numbers duplicates.
    fn name_all(&mut self) {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        // The numbers below are given out for that name.
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
            let free = free.expect("numbers do not end");
            *next = free + 1;
            let free = numbered(free);
            taken.insert(free.clone());
            *name = Some(free);
        }
    }

    /// Assigns subnets 10.1.1.0/24 and up and hosts from 2, as in Emulab; addresses in the script take
    /// precedence.
    fn addresses(&self) -> Vec<Vec<Address>> {
        let given: BTreeSet<Ipv4Addr> =
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
            let address = |given: &Option<Ipv4Addr>| given.or_else(|| hosts.next());
            all.push(segment.addresses.iter().filter_map(address).map(Address::from).collect());
        }
        all
    }
}

fn link(
    segment: &Segment,
    mut members: impl Iterator<Item = String>,
    addresses: Vec<Address>,
    [up, down]: [&Line; 2],
) -> LinkSpec {
    let mut end = || members.next().unwrap_or_default();
    let mut link = LinkSpec { addresses, ..LinkSpec::between(end(), end()) };
    let said = up.said();
    link.name = segment.name.clone();
    (link.rate, link.delay, link.loss, link.queue, link.discipline) =
        (said.rate, said.delay, said.loss, said.queue, said.discipline);
    link.down = down.unlike(up);
    link
}

fn lan(segment: &Segment, nodes: Vec<String>, addresses: Vec<Address>, line: &Line) -> LanSpec {
    let said = line.said();
    let mut lan = LanSpec { name: segment.name.clone(), addresses, ..LanSpec::of(nodes) };
    (lan.rate, lan.delay, lan.loss, lan.queue, lan.discipline) =
        (said.rate, said.delay, said.loss, said.queue, said.discipline);
    lan
}

impl Line {
    /// Returns the non-default settings.
    fn said(&self) -> Overrides {
        Overrides {
            rate: Some(self.rate),
            delay: Some(self.delay),
            loss: (!self.loss.is_zero()).then_some(LossSpec::Independent(self.loss)),
            queue: Some(self.queue.limit()).filter(|limit| *limit != QueueLimit::Packets(DEFAULT_QUEUE)),
            discipline: Some(self.queue.discipline())
                .filter(|discipline| *discipline != Discipline::DropTail),
            ..Overrides::default()
        }
    }

    /// Returns the settings that differ in this direction.
    fn unlike(&self, other: &Self) -> Option<Overrides> {
        fn changed<T: PartialEq>(own: T, other: &T) -> Option<T> {
            (own != *other).then_some(own)
        }
        let overrides = Overrides {
            rate: changed(self.rate, &other.rate),
            delay: changed(self.delay, &other.delay),
            loss: changed(self.loss, &other.loss).map(LossSpec::Independent),
            queue: changed(self.queue.limit(), &other.queue.limit()),
            discipline: changed(self.queue.discipline(), &other.queue.discipline()),
            ..Overrides::default()
        };
        (overrides != Overrides::default()).then_some(overrides)
    }
}

impl Queue {
    fn limit(&self) -> QueueLimit {
        if self.in_bytes { QueueLimit::Bytes(self.limit) } else { QueueLimit::Packets(self.limit) }
    }

    fn discipline(&self) -> Discipline {
        if !self.red {
            return Discipline::DropTail;
        }
        let threshold = |packets: f64| match self.in_bytes {
            true => QueueLimit::Bytes((packets * self.packet as f64).round() as u64),
            false => QueueLimit::Packets(packets.round() as u64),
        };
        Discipline::Red(RedSpec {
            min: threshold(self.min),
            max: threshold(self.max),
            weight: self.weight,
            drop: Ratio::new(1.0 / self.linterm).unwrap_or_default(),
            gentle: self.gentle,
            packet: ByteCount(self.packet),
            ecn: false,
        })
    }
}
