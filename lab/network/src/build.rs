//! Builds the [`Topology`] from the network table.

use std::collections::BTreeMap;
use std::sync::Arc;

use hol_base::Time;
use hol_wire::Address;

use crate::check::{check_channels, check_form, check_settings};
use crate::error::NetworkError;
use crate::event::EventSpec;
use crate::handover::{HandoverChange, HandoverSpec};
use crate::identifier::{InterfaceId, LinkId, NodeId};
use crate::link_change::LinkChange;
use crate::loss::LossSpec;
use crate::routes::routes;
use crate::spec::{NetworkSpec, Settings};
use crate::topology::{Interface, LinkDirectionSettings, Medium, ScheduledChange, Segment, Topology};

impl Topology {
    /// Validates a network table and builds its topology; nodes may have any names.
    ///
    /// ```
    /// use hol_network::{NetworkSpec, PathSpec, Topology};
    ///
    /// let spec = NetworkSpec { paths: vec![PathSpec::default(), PathSpec::default()], ..NetworkSpec::default() };
    /// let topology = Topology::new(&spec)?;
    /// assert_eq!(topology.interface_names(), ["client:1", "server:1", "client:2", "server:2"]);
    ///
    /// let spec = NetworkSpec { mtu: "20B".parse().unwrap(), ..spec };
    /// assert!(Topology::new(&spec).unwrap_err().to_string().contains("the minimum of IPv4 is 576"));
    /// # Ok::<(), hol_network::NetworkError>(())
    /// ```
    pub fn new(spec: &NetworkSpec) -> Result<Self, NetworkError> {
        check_form(spec)?;
        let mut topology = Self {
            ip: spec.ip,
            nodes: node_names(spec)?,
            names: Vec::new(),
            interfaces: Vec::new(),
            links: Vec::new(),
            segments: Vec::new(),
            routes: Arc::default(),
            link_changes: Vec::new(),
            address_changes: Vec::new(),
            route_changes: Vec::new(),
        };
        if spec.nodes.is_empty() {
            topology.add_paths(spec)?;
        } else {
            topology.add_links(spec)?;
            topology.add_lans(spec)?;
        }
        check_channels(&topology.links)?;
        topology.check_addresses()?;
        topology.routes = Arc::new(routes(&topology)?);
        for event in &spec.events {
            topology.add_event(event)?;
        }
        if let Some(handover) = &spec.handover {
            topology.add_handover(handover, spec.paths.len())?;
        }
        topology.link_changes.sort_by_key(|change| change.at);
        Ok(topology)
    }

    fn add_paths(&mut self, spec: &NetworkSpec) -> Result<(), NetworkError> {
        let ends = ["client", "server"]
            .map(|name| self.node(name).expect("a network of paths has a client and a server"));
        let single = [crate::PathSpec::default()];
        for path in if spec.paths.is_empty() { &single[..] } else { &spec.paths } {
            let label = (self.segments.len() + 1).to_string();
            self.add_link(label, ends, &[], spec.directions_of(path))?;
        }
        Ok(())
    }

    fn add_links(&mut self, spec: &NetworkSpec) -> Result<(), NetworkError> {
        for link in &spec.links {
            let label = link.name.clone().unwrap_or_else(|| format!("{}-{}", link.from, link.to));
            if link.from == link.to {
                return Err(NetworkError::SelfLink {
                    place: format!("link {label}"),
                    node: link.from.clone(),
                });
            }
            let from = self.known(&link.from, &format!("link {label}"))?;
            let to = self.known(&link.to, &format!("link {label}"))?;
            let table = link.overrides();
            let up = spec.settings().with_overrides(&table, link.up.as_ref());
            let down = spec.settings().with_overrides(&table, link.down.as_ref());
            self.add_link(label, [from, to], &link.addresses, [up, down])?;
        }
        Ok(())
    }

    fn add_lans(&mut self, spec: &NetworkSpec) -> Result<(), NetworkError> {
        for lan in &spec.lans {
            let label = lan.name.clone().unwrap_or_else(|| lan.nodes.join("-"));
            let place = format!("LAN {label}");
            if !(2..=250).contains(&lan.nodes.len()) {
                return Err(NetworkError::LanSize { place, count: lan.nodes.len() });
            }
            let members = lan.nodes.iter().map(|name| self.known(name, &place));
            let members = members.collect::<Result<Vec<_>, _>>()?;
            if let Some(node) = (1..members.len()).find(|at| members[..*at].contains(&members[*at])) {
                return Err(NetworkError::SelfLink { place, node: lan.nodes[node].clone() });
            }
            let name = format!("lan/{}", self.segments.len() + 1);
            let link = self.add_direction(name, spec.settings().with_overrides(&lan.overrides(), None))?;
            self.add_segment(label, &members, &lan.addresses, Medium::Lan(link))?;
        }
        Ok(())
    }

    fn add_link(
        &mut self,
        label: String,
        ends: [NodeId; 2],
        addresses: &[Address],
        [up, down]: [Settings; 2],
    ) -> Result<(), NetworkError> {
        let number = self.segments.len() + 1;
        let up = self.add_direction(format!("link/{number}/up"), up)?;
        let down = self.add_direction(format!("link/{number}/down"), down)?;
        self.add_segment(label, &ends, addresses, Medium::Link { up, down })
    }

    fn add_direction(&mut self, name: String, settings: Settings) -> Result<LinkId, NetworkError> {
        check_settings(&name, &settings, self.ip)?;
        self.links.push(LinkDirectionSettings { name, settings });
        Ok(LinkId(self.links.len() as u16 - 1))
    }

    /// Adds a link or a LAN. Each member gets an interface, with the address from the table or with a default
    /// address, which depends on its position and the version of IP.
    fn add_segment(
        &mut self,
        label: String,
        members: &[NodeId],
        addresses: &[Address],
        medium: Medium,
    ) -> Result<(), NetworkError> {
        const MAX_SEGMENTS: usize = 30_000;
        let number = self.segments.len() + 1;
        if number > MAX_SEGMENTS || self.interfaces.len() + members.len() > usize::from(u16::MAX) {
            return Err(NetworkError::TooManySegments(number));
        }
        if !addresses.is_empty() && addresses.len() != members.len() {
            let (place, nodes) = (format!("segment {label}"), members.len());
            return Err(NetworkError::AddressCount { place, nodes, addresses: addresses.len() });
        }
        let mut interfaces = Vec::new();
        for (host, node) in (1..).zip(members) {
            interfaces.push(InterfaceId(self.interfaces.len() as u16));
            let own = addresses.get(usize::from(host) - 1).copied();
            let address = own.unwrap_or(self.ip.address(number as u16, host));
            self.interfaces.push(Interface { node: *node, address });
            self.names.push(format!("{}:{number}", self.node_name(*node)));
        }
        self.segments.push(Segment { label, interfaces, medium });
        Ok(())
    }

    /// Checks that no two interfaces have the same address, and that all addresses are of the network's version of
    /// IP.
    fn check_addresses(&self) -> Result<(), NetworkError> {
        let mut owners = BTreeMap::new();
        for (interface, name) in self.interfaces.iter().zip(&self.names) {
            let (ip, address) = (self.ip, interface.address);
            if !ip.has(address) {
                return Err(NetworkError::AddressFamily { address, of: name.clone(), ip });
            }
            if let Some(first) = owners.insert(address, name) {
                let (first, second) = (first.clone(), name.clone());
                return Err(NetworkError::DuplicateAddress { address, first, second });
            }
        }
        Ok(())
    }

    fn add_event(&mut self, event: &EventSpec) -> Result<(), NetworkError> {
        let EventSpec { at, direction, path, ref link, down, rate, ref loss, delay } = *event;
        let changes: Vec<LinkChange> = [
            down.map(|down| if down { LinkChange::Down } else { LinkChange::Up }),
            rate.map(LinkChange::Rate),
            loss.clone().map(LinkChange::Loss),
            delay.map(LinkChange::Delay),
        ]
        .into_iter()
        .flatten()
        .collect();
        if changes.is_empty() {
            return Err(NetworkError::EventWithoutChange { at });
        }
        if matches!(loss, Some(LossSpec::TimedBursts(_))) {
            return Err(NetworkError::TimedBurstsInEvent { at });
        }
        let label = path.map(|number| number.to_string()).or_else(|| link.clone());
        let targets =
            self.segments.iter().filter(|segment| label.as_ref().is_none_or(|l| *l == segment.label));
        let links: Vec<LinkId> = targets.flat_map(|segment| segment.medium.links(direction)).collect();
        if links.is_empty() {
            let target =
                format!("{} {}", if path.is_some() { "path" } else { "link" }, label.unwrap_or_default());
            let cure = "paths are counted from 1, a link without a name is called \"from-to\", and a LAN has no directions";
            return Err(NetworkError::EventWithoutTarget { at, target, cure });
        }
        let has_bursts = |link: &LinkDirectionSettings| {
            loss.is_some() && matches!(link.settings.loss, LossSpec::TimedBursts(_))
        };
        let plans = links.iter().map(|link| &self.links[usize::from(link.0)]);
        if let Some(link) = plans.into_iter().find(|link| has_bursts(link)) {
            return Err(NetworkError::LossEventDuringTimedBursts { at, link: link.name.clone() });
        }
        let at = Time::ZERO + at;
        for link in links {
            self.link_changes.extend(changes.iter().cloned().map(|change| ScheduledChange {
                at,
                link,
                change,
            }));
        }
        Ok(())
    }

    fn add_handover(&mut self, handover: &HandoverSpec, paths: usize) -> Result<(), NetworkError> {
        handover.check(paths)?;
        handover.events().iter().try_for_each(|event| self.add_event(event))?;
        match handover.changes {
            HandoverChange::Address => self.address_changes = handover.address_changes(self),
            HandoverChange::Route => self.route_changes = handover.route_changes(self),
        }
        Ok(())
    }

    fn known(&self, name: &str, place: &str) -> Result<NodeId, NetworkError> {
        let unknown = || NetworkError::UnknownNode { place: place.to_owned(), node: name.to_owned() };
        self.node(name).ok_or_else(unknown)
    }
}

fn node_names(spec: &NetworkSpec) -> Result<Vec<String>, NetworkError> {
    if spec.nodes.is_empty() {
        return Ok(["client", "server"].map(str::to_owned).to_vec());
    }
    let twice = (1..spec.nodes.len()).find(|at| spec.nodes[..*at].contains(&spec.nodes[*at]));
    twice
        .map_or_else(|| Ok(spec.nodes.clone()), |at| Err(NetworkError::DuplicateNode(spec.nodes[at].clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(text: &str) -> Result<Topology, NetworkError> {
        Topology::new(&toml::from_str(text).unwrap())
    }

    #[test]
    fn the_short_form_is_one_link() {
        let topology = topology("").unwrap();
        assert_eq!(topology.interface_names(), ["client:1", "server:1"]);
        assert_eq!(topology.addresses(NodeId(0)), [hol_wire::ipv4(10, 0, 1, 1)]);
        assert_eq!(topology.addresses(NodeId(1)), [hol_wire::ipv4(10, 0, 1, 2)]);
    }

    #[test]
    fn each_path_has_its_own_interfaces_and_settings() {
        let topology = topology("up = { delay = '3ms' }\npaths = [{}, { delay = '50ms' }]").unwrap();
        assert_eq!(topology.addresses(NodeId(1)), [hol_wire::ipv4(10, 0, 1, 2), hol_wire::ipv4(10, 0, 2, 2)]);
        let delays: Vec<u64> = topology.links.iter().map(|link| link.settings.delay.as_millis()).collect();
        assert_eq!(delays, [3, 10, 50, 50]);
    }

    #[test]
    fn events_are_sorted_and_apply_to_the_right_links() {
        let topology = topology(
            "paths = [{}, {}]\nevents = [{ at = '9s', path = 2, direction = 'down', down = true }, \
             { at = '5s', rate = '1Mbit', loss = '1%' }]",
        )
        .unwrap();
        let links: Vec<u16> = topology.link_changes.iter().map(|change| change.link.0).collect();
        assert_eq!(links, [0, 0, 1, 1, 2, 2, 3, 3, 3]);
        assert_eq!(topology.link_changes[8].change, LinkChange::Down);
    }

    #[test]
    fn contradictory_tables_are_refused_with_a_remedy() {
        for (table, cure) in [
            ("jitter = '20ms'", "lower `jitter`"),
            ("jitter_correlation = '50%'", "jitter = \"5ms\""),
            ("jitter_distribution = 'normal'", "jitter = \"5ms\""),
            ("jitter = '1ms'\njitter_distribution = 'pareto'\njitter_correlation = '50%'", "use \"normal\""),
            ("jitter = '1ms'\njitter_distribution = { file = 'a.dist' }", "as `table`"),
            ("jitter = '1ms'\njitter_distribution = { table = [] }", "1 to 16384"),
            ("police = { rate = '1Mbit', burst = '1499B' }", "use 1500 (`mtu`)"),
            ("police = { rate = '1Mbit', burst = '1100MB' }", "to 1000000000"),
            ("up = { channel = 'air' }", "no other link is on its `channel` \"air\""),
            ("reorder = '1%'", "reorder_by = \"5ms\""),
            ("reorder_by = '1ms'", "reorder = \"1%\""),
            ("mtu = '20B'", "the minimum of IPv4 is 576"),
            ("queue = '0p'", "at least \"1p\""),
            ("nodes = ['client', 'server']\npaths = [{}]", "write each path as one of `links`"),
            ("links = [{ from = 'client', to = 'server' }]", "name the nodes"),
            ("paths = [{ backup = true }, {}]", "put the backup path after"),
            ("nodes = ['client', 'server', 'client']", "twice"),
            ("nodes = ['client', 'server']\nlinks = [{ from = 'client', to = 'sever' }]", "not in `nodes`"),
            ("nodes = ['client', 'server']\nlinks = [{ from = 'client', to = 'client' }]", "itself"),
            ("nodes = ['client', 'server']", "add a link"),
            ("nodes = ['client', 'server']\nlans = [{ nodes = ['client'] }]", "must have 2 to 250"),
            ("discipline = { red = { min = '9p', max = '9p' } }", "raise `max`"),
            ("discipline = { pie = { beta = 33 } }", "the maximum of 32"),
            (
                "nodes = ['client', 'server']\nlinks = [{ from = 'client', to = 'server', addresses = ['10.0.0.1'] }]",
                "give each node one",
            ),
            (
                "nodes = ['client', 'server']\nlinks = [{ from = 'client', to = 'server', addresses = ['10.0.0.1', \
                 '10.0.0.1'] }]",
                "one of them another",
            ),
            ("events = [{ at = '1s' }]", "add one of"),
            ("events = [{ at = '1s', path = 2, down = true }]", "counted from 1"),
        ] {
            let error = topology(table).expect_err(table).to_string();
            assert!(error.contains(cure), "{table}: {error}");
        }
    }
}
