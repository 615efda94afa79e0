//! The input of a run.

use std::collections::{BTreeMap, BTreeSet};

use hol_base::{Duration, Seed};
use hol_network::{NetworkSpec, Topology};
use hol_stack::TransportSpec;
use hol_workloads::{Filter, HostSpec, Processor, WorkloadSpec};
use serde::{Deserialize, Serialize};

use crate::flow_spec::check_node;
use crate::{Background, CLIENT_PORTS, OnwardRequests, Program, Root, ScenarioError, transport_text};

/// One point of an experiment: a network, a transport, a workload, and background flows or programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// The network between the endpoints.
    pub network: NetworkSpec,
    /// Properties of nodes other than their links, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, HostSpec>,
    /// The transport of the measured flow.
    #[serde(with = "transport_text")]
    pub transport: TransportSpec,
    /// The workload of the measured flow.
    pub workload: WorkloadSpec,
    /// The number of messages (or transactions) that the measured flow sends.
    pub messages: u64,
    /// The background traffic.
    pub background: Vec<Background>,
    /// The requests that servers send to other servers before they answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub onward: Vec<OnwardRequests>,
    /// The user's programs on the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// The origin of the programs and of the files that they need.
    #[serde(default)]
    pub root: Root,
}

impl Scenario {
    /// Creates a scenario with one flow, on hosts with default properties.
    pub fn with_single_flow(
        network: NetworkSpec,
        transport: TransportSpec,
        workload: WorkloadSpec,
        messages: u64,
    ) -> Self {
        let (hosts, background, onward) = (BTreeMap::new(), Vec::new(), Vec::new());
        let (programs, root) = (Vec::new(), Root::Host);
        Self { network, hosts, transport, workload, messages, background, onward, programs, root }
    }

    /// Checks that the scenario does not contradict itself.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let topology = Topology::new(&self.network)?;
        for name in self.hosts.keys() {
            check_node(&topology, "hosts", name)?;
        }
        self.measured_flow().check(&topology)?;
        self.check_filters()?;
        self.check_services()?;
        for flow in self.flow_specs().skip(1) {
            flow.check(&topology).map_err(|problem| flow.position.with_table_name(problem))?;
        }
        self.check_onward()?;
        for program in &self.programs {
            check_node(&topology, "node", &program.node)?;
        }
        self.check_programs()?;
        let connections = self.flow_specs().map(|flow| flow.connections()).fold(0, u64::saturating_add);
        if connections > CLIENT_PORTS as u64 {
            return Err(ScenarioError::TooManyConnections(connections, CLIENT_PORTS));
        }
        Ok(())
    }

    /// Checks that packet filters are only on nodes whose middlebox is measured.
    fn check_filters(&self) -> Result<(), ScenarioError> {
        let to = self.workload.server_node();
        let has_middlebox = |node: &str| node == to && self.workload.kind.workload().has_middlebox();
        let mut filtered = self.hosts.iter().filter(|(_, host)| host.filter != Filter::None);
        let idle = filtered.find(|(node, _)| !has_middlebox(node));
        idle.map_or(Ok(()), |(node, _)| Err(ScenarioError::NoMiddlebox(node.clone())))
    }

    /// Checks that `service` times are only on hosts whose peers are limited by flow control.
    fn check_services(&self) -> Result<(), ScenarioError> {
        for (node, _) in self.hosts.iter().filter(|(_, host)| host.service > Duration::ZERO) {
            let mut own =
                self.flow_specs().filter(|flow| flow.end_nodes().contains(&node.as_str())).peekable();
            if own.peek().is_none() {
                return Err(ScenarioError::IdleProcessor(node.clone()));
            }
            if own.any(|flow| flow.transport.lacks_flow_control()) {
                return Err(ScenarioError::ServiceOverDatagrams(node.clone()));
            }
        }
        Ok(())
    }

    /// Checks that programs contradict neither themselves nor the workload.
    fn check_programs(&self) -> Result<(), ScenarioError> {
        if self.flow_specs().skip(1).any(|flow| flow.workload.runs_programs()) {
            return Err(ScenarioError::ProgramsAsOtherFlow);
        }
        if self.runs_programs() && !self.programs.iter().any(Program::is_awaited) {
            return Err(ScenarioError::NoProgram);
        }
        if self.runs_programs() && self.workload.start + self.workload.spread > Duration::ZERO {
            return Err(ScenarioError::ProgramsStart);
        }
        if self.runs_programs() && self.transport.tls().is_some() {
            return Err(ScenarioError::ProgramsTls);
        }
        let mut names = BTreeSet::new();
        for (index, program) in self.programs.iter().enumerate() {
            program.check().map_err(|problem| ScenarioError::Program { index, problem })?;
            if !program.metrics.keys().all(|name| names.insert(name)) {
                let problem = "another program has a metric of this name; rename one of them";
                return Err(ScenarioError::Program { index, problem });
            }
        }
        Ok(())
    }

    /// Returns whether the scenario measures programs.
    pub const fn runs_programs(&self) -> bool {
        self.workload.runs_programs()
    }

    /// Returns the nodes whose packets are captured: the ends of the workload, and the nodes of programs.
    pub fn captured_nodes(&self) -> Vec<&str> {
        let programs = self.programs.iter().map(|program| program.node.as_str());
        let mut ends: Vec<&str> =
            [self.workload.client_node(), self.workload.server_node()].into_iter().chain(programs).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Returns the processors of the hosts with a `service` time, by name.
    pub fn processors(&self) -> BTreeMap<&str, Processor> {
        self.hosts.iter().filter_map(|(name, host)| Some((name.as_str(), host.processor()?))).collect()
    }

    /// Returns the measured workload in a run with this seed, which draws the start within `spread`.
    pub fn measured_workload(&self, seed: Seed) -> WorkloadSpec {
        self.workload.with_drawn_start(seed)
    }

    /// Returns the names of all interfaces, in the order of [`TapPoint::interface`](hol_network::TapPoint::interface).
    pub fn interfaces(&self) -> Result<Vec<String>, ScenarioError> {
        Ok(Topology::new(&self.network)?.interface_names())
    }

    /// Returns the properties of a node other than its links.
    pub fn host(&self, node: &str) -> HostSpec {
        self.hosts.get(node).copied().unwrap_or_default()
    }

    /// Returns the node whose middlebox has a packet filter, if there is one.
    pub fn filtered_node(&self) -> Option<&str> {
        self.hosts.iter().find(|(_, host)| host.filter != Filter::None).map(|(name, _)| name.as_str())
    }
}
