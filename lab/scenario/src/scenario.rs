//! What a world is asked.

use std::collections::BTreeMap;

use hol_base::{Duration, Seed};
use hol_network::{NetworkSpec, Topology};
use hol_stack::{Kind, TransportSpec};
use hol_workloads::{Filter, HostSpec, Processor, WorkloadSpec};
use serde::{Deserialize, Serialize};

use crate::{Background, CLIENT_PORTS, Onward, Program, Root, ScenarioError};

/// One point of an experiment: a workload over a transport over a network, and what else goes on there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// What lies between the endpoints.
    pub network: NetworkSpec,
    /// What nodes have beside their links, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, HostSpec>,
    /// How the messages travel.
    #[serde(with = "as_written")]
    pub transport: TransportSpec,
    /// What the application does.
    pub workload: WorkloadSpec,
    /// How many messages (or transactions) it sends.
    pub messages: u64,
    /// What competes with it.
    pub background: Vec<Background>,
    /// What servers ask of others before they answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub onward: Vec<Onward>,
    /// The user's own programs on its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// Where these, and what they need, come from.
    #[serde(default)]
    pub root: Root,
}

impl Scenario {
    /// A workload without a background, on hosts that have nothing beside their links.
    pub fn alone(
        network: NetworkSpec,
        transport: TransportSpec,
        workload: WorkloadSpec,
        messages: u64,
    ) -> Self {
        let (hosts, background, onward) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (programs, root) = (Vec::new(), Root::Host);
        Self { network, hosts, transport, workload, messages, background, onward, programs, root }
    }

    /// Refuses a scenario that contradicts itself.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let topology = Topology::new(&self.network)?;
        check_messages(self.messages)?;
        for name in self.hosts.keys() {
            check_node(&topology, "hosts", name)?;
        }
        check_flow(&self.workload, &self.transport, &topology)?;
        self.check_filters()?;
        self.check_services()?;
        let opened = |workload: &WorkloadSpec, transport: &TransportSpec, messages| {
            workload.kind.workload().connections(messages, transport.connections())
        };
        let mut connections = opened(&self.workload, &self.transport, self.messages);
        for (index, Background { workload, transport, messages, count, .. }) in
            self.background.iter().enumerate()
        {
            let some = messages.map_or(Ok(()), check_messages);
            some.and_then(|()| check_flow(workload, transport, &topology))
                .map_err(|problem| ScenarioError::Background { index, problem: Box::new(problem) })?;
            // One that goes on for ever opens what it can.
            let each = opened(workload, transport, messages.unwrap_or(1));
            connections = connections.saturating_add(each.saturating_mul((*count).into()));
        }
        for (index, Onward { workload, transport }) in self.onward.iter().enumerate() {
            check_flow(workload, transport, &topology)
                .map_err(|problem| ScenarioError::Onward { index, problem: Box::new(problem) })?;
            connections = connections.saturating_add(opened(workload, transport, 1));
        }
        self.check_onward()?;
        for program in &self.programs {
            check_node(&topology, "node", &program.node)?;
        }
        self.check_programs()?;
        if connections > CLIENT_PORTS as u64 {
            return Err(ScenarioError::TooManyConnections(connections, CLIENT_PORTS));
        }
        Ok(())
    }

    /// A packet filter is for the middlebox that is measured.
    fn check_filters(&self) -> Result<(), ScenarioError> {
        let to = self.workload.to();
        let has_middlebox = |node: &str| node == to && self.workload.kind.workload().has_middlebox();
        let mut filtered = self.hosts.iter().filter(|(_, host)| host.filter != Filter::None);
        let idle = filtered.find(|(node, _)| !has_middlebox(node));
        idle.map_or(Ok(()), |(node, _)| Err(ScenarioError::NoMiddlebox(node.clone())))
    }

    /// A processor is for those whom flow control keeps from sending more than it serves.
    fn check_services(&self) -> Result<(), ScenarioError> {
        let flows: Vec<_> = self.flows().collect();
        for (node, _) in self.hosts.iter().filter(|(_, host)| host.service > Duration::ZERO) {
            let mut own = flows
                .iter()
                .filter(|(_, workload)| [workload.from(), workload.to()].contains(&node.as_str()));
            if own.clone().next().is_none() {
                return Err(ScenarioError::IdleProcessor(node.clone()));
            }
            if own.any(|(transport, _)| transport.is_heedless()) {
                return Err(ScenarioError::ServiceOfDatagrams(node.clone()));
            }
        }
        Ok(())
    }

    /// How the messages of each kind of flow travel, and what its application does: the measured one, those of the background, then
    /// those on which servers ask.
    pub fn flows(&self) -> impl Iterator<Item = (&TransportSpec, &WorkloadSpec)> {
        let background = self.background.iter().map(|entry| (&entry.transport, &entry.workload));
        let onward = self.onward.iter().map(|entry| (&entry.transport, &entry.workload));
        [(&self.transport, &self.workload)].into_iter().chain(background).chain(onward)
    }

    /// The processors of the hosts that take time for messages, by their names.
    pub fn processors(&self) -> BTreeMap<&str, Processor> {
        self.hosts.iter().filter_map(|(name, host)| Some((name.as_str(), host.processor()?))).collect()
    }

    /// What is measured in a run with this seed: where a `spread` is, the seed draws the start.
    pub fn measured(&self, seed: Seed) -> WorkloadSpec {
        self.workload.started(seed)
    }

    /// The names of all interfaces, in the order of [`TapPoint::interface`](hol_network::TapPoint::interface).
    pub fn interfaces(&self) -> Result<Vec<String>, ScenarioError> {
        Ok(Topology::new(&self.network)?.interface_names())
    }

    /// What a node has beside its links.
    pub fn host(&self, node: &str) -> HostSpec {
        self.hosts.get(node).copied().unwrap_or_default()
    }

    /// The node whose middlebox has a packet filter, if one has.
    pub fn filtered(&self) -> Option<&str> {
        self.hosts.iter().find(|(_, host)| host.filter != Filter::None).map(|(name, _)| name.as_str())
    }
}

fn check_node(topology: &Topology, key: &'static str, node: &str) -> Result<(), ScenarioError> {
    if topology.node(node).is_some() {
        return Ok(());
    }
    let names = topology.node_names();
    let (known, example) = (names.join(", "), names[0].clone());
    Err(ScenarioError::UnknownNode { key, node: node.to_owned(), known, example })
}

fn check_flow(
    workload: &WorkloadSpec,
    transport: &TransportSpec,
    topology: &Topology,
) -> Result<(), ScenarioError> {
    workload.check()?;
    for (key, node) in [("from", workload.from()), ("to", workload.to())] {
        check_node(topology, key, node)?;
    }
    match (transport.kind() == Kind::Unix, workload.from() == workload.to()) {
        (false, true) => return Err(ScenarioError::SameEnds(workload.from().to_owned())),
        (true, false) => return Err(ScenarioError::TwoHosts(workload.from().to_owned())),
        _ => {}
    }
    if transport.kind() == Kind::Udp && workload.is_greedy() {
        return Err(ScenarioError::NothingSetsThePace);
    }
    if workload.waits_for_replies() && transport.gives_up() {
        return Err(ScenarioError::WaitsForTheLost(workload.kind.workload().name()));
    }
    Ok(())
}

fn check_messages(messages: u64) -> Result<(), ScenarioError> {
    match messages {
        0 => Err(ScenarioError::NoMessages),
        more if more > u32::MAX.into() => Err(ScenarioError::TooManyMessages(more)),
        _ => Ok(()),
    }
}

/// A transport as its user wrote it: whoever reads it knows the same stacks.
pub(crate) mod as_written {
    use hol_stack::TransportSpec;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(crate) fn serialize<S: Serializer>(spec: &TransportSpec, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(spec)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TransportSpec, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
