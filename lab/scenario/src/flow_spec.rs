//! The flows of a scenario: the measured flow, background flows, and onward flows.

use hol_base::Seed;
use hol_network::Topology;
use hol_stack::{Protocol, ProtocolKind, TransportSpec};
use hol_workloads::WorkloadSpec;

use crate::background::BackgroundFlow;
use crate::onward::OnwardFlow;
use crate::{OnwardRequests, Scenario, ScenarioError};

/// A flow as its table in the experiment defines it; an entry of the background represents all its copies.
#[derive(Debug, Clone, Copy)]
pub struct FlowSpec<'s> {
    /// Position of the flow's table.
    pub position: FlowPosition,
    /// Transport of the flow's messages.
    pub transport: &'s TransportSpec,
    /// Workload of the flow.
    pub workload: &'s WorkloadSpec,
    /// Number of messages that the flow sends; `None`: unlimited (background), or one for each request
    /// (onward).
    pub messages: Option<u64>,
    /// Number of copies of the flow.
    pub count: u16,
}

/// The position of a flow in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowPosition {
    /// The measured flow.
    Measured,
    /// An entry of the background, by index from 0.
    Background(usize),
    /// An onward flow, by index from 0.
    Onward(usize),
}

impl FlowPosition {
    /// Returns the table's name, such as `[[background]] number 2`; `None` for the measured flow.
    pub fn table(self) -> Option<String> {
        match self {
            Self::Measured => None,
            Self::Background(index) => Some(format!("[[background]] number {}", index + 1)),
            Self::Onward(index) => Some(format!("[[onward]] number {}", index + 1)),
        }
    }

    /// Adds the table's name to an error.
    pub(crate) fn with_table_name(self, problem: ScenarioError) -> ScenarioError {
        match self {
            Self::Measured => problem,
            Self::Background(index) => ScenarioError::Background { index, problem: Box::new(problem) },
            Self::Onward(index) => ScenarioError::Onward { index, problem: Box::new(problem) },
        }
    }
}

impl<'s> FlowSpec<'s> {
    /// Returns the two nodes between which the flow runs.
    pub fn end_nodes(&self) -> [&'s str; 2] {
        [self.workload.client_node(), self.workload.server_node()]
    }

    /// Returns the minimum number of connections that all copies of the flow open.
    pub(crate) fn connections(&self) -> u64 {
        // The number of connections of an endless flow is not limited.
        let messages = self.messages.unwrap_or(1);
        let each = self.workload.kind.workload().connections(messages, self.transport.connections());
        each.saturating_mul(self.count.into())
    }

    /// Refuses a flow that contradicts itself or the network.
    pub(crate) fn check(&self, topology: &Topology) -> Result<(), ScenarioError> {
        let Self { transport, workload, .. } = self;
        self.messages.map_or(Ok(()), check_messages)?;
        workload.check()?;
        for (key, node) in [("from", workload.client_node()), ("to", workload.server_node())] {
            check_node(topology, key, node)?;
        }
        match (transport.kind() == ProtocolKind::Unix, workload.client_node() == workload.server_node()) {
            (false, true) => return Err(ScenarioError::SameEnds(workload.client_node().to_owned())),
            (true, false) => {
                return Err(ScenarioError::UnixSocketBetweenNodes(workload.client_node().to_owned()));
            }
            _ => {}
        }
        if transport.kind() == ProtocolKind::Udp && workload.is_greedy() {
            return Err(ScenarioError::GreedyOverDatagrams);
        }
        if workload.waits_for_replies() && transport.may_lose_messages() {
            return Err(ScenarioError::WaitsForLostReply(workload.kind.workload().name()));
        }
        match (transport.protocol(), workload.longest_message()) {
            (Protocol::Sctp { config, .. }, Some(longest))
                if config.send_buffer_bounds_messages && longest > config.send_buffer.0 =>
            {
                Err(ScenarioError::LongerThanSendBuffer(longest, config.send_buffer.0))
            }
            _ => Ok(()),
        }
    }
}

impl Scenario {
    /// Returns the measured flow.
    pub fn measured_flow(&self) -> FlowSpec<'_> {
        let Self { transport, workload, messages, .. } = self;
        FlowSpec {
            position: FlowPosition::Measured,
            transport,
            workload,
            messages: Some(*messages),
            count: 1,
        }
    }

    /// Returns the measured flow, then the background flows, then the onward flows.
    pub fn flow_specs(&self) -> impl Iterator<Item = FlowSpec<'_>> {
        let background = self.background.iter().enumerate().map(|(index, entry)| FlowSpec {
            position: FlowPosition::Background(index),
            transport: &entry.transport,
            workload: &entry.workload,
            messages: entry.messages,
            count: entry.count,
        });
        let onward = self.onward.iter().enumerate().map(|(index, OnwardRequests { transport, workload })| {
            FlowSpec { position: FlowPosition::Onward(index), transport, workload, messages: None, count: 1 }
        });
        [self.measured_flow()].into_iter().chain(background).chain(onward)
    }

    /// Returns every background flow in a run with this seed.
    pub fn background_flows(&self, seed: Seed) -> impl Iterator<Item = BackgroundFlow<'_>> {
        let seed = seed.derive("background");
        self.background.iter().enumerate().flat_map(move |(number, entry)| {
            let seed = seed.derive_for_index(number as u64);
            (0..entry.count).map(move |copy| entry.flow(seed.derive_for_index(copy.into())))
        })
    }

    /// Returns the onward flows in a run with this seed.
    pub fn onward_flows(&self, seed: Seed) -> impl Iterator<Item = OnwardFlow<'_>> {
        let seed = seed.derive("onward");
        self.onward.iter().enumerate().map(move |(number, OnwardRequests { transport, workload })| {
            let seed = seed.derive_for_index(number as u64);
            OnwardFlow { transport, workload: workload.with_drawn_start(seed), seed }
        })
    }
}

/// Checks that a node of the flow exists.
pub(crate) fn check_node(topology: &Topology, key: &'static str, node: &str) -> Result<(), ScenarioError> {
    if topology.node(node).is_some() {
        return Ok(());
    }
    let names = topology.node_names();
    let (known, example) = (names.join(", "), names[0].clone());
    Err(ScenarioError::UnknownNode { key, node: node.to_owned(), known, example })
}

fn check_messages(messages: u64) -> Result<(), ScenarioError> {
    match messages {
        0 => Err(ScenarioError::NoMessages),
        more if more > u32::MAX.into() => Err(ScenarioError::TooManyMessages(more)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `net/sctp/socket.c`, sctp_sendmsg_parse(): EMSGSIZE. The scenario is rejected before the run.
    #[test]
    fn a_message_fits_into_the_send_buffer_of_sctp() {
        let check = |transport: &str, size: u64| {
            let workload = toml::from_str(&format!("kind = 'echo'\nsize = '{size}B'")).unwrap();
            let transport = transport.parse().unwrap();
            let topology = Topology::new(&toml::from_str("").unwrap()).unwrap();
            let position = FlowPosition::Measured;
            let spec = FlowSpec {
                position,
                transport: &transport,
                workload: &workload,
                messages: Some(1),
                count: 1,
            };
            spec.check(&topology)
        };
        assert_eq!(check("sctp", 212_992), Ok(()));
        assert_eq!(check("sctp", 212_993), Err(ScenarioError::LongerThanSendBuffer(212_993, 212_992)));
        assert_eq!(check("sctp:send_buffer=1MB", 256_000), Ok(()));
        assert_eq!(check("tcp", 256_000), Ok(()));
    }
}
