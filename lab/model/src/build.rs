//! Builds a simulation from a scenario.

use std::collections::BTreeMap;

use hol_base::{Seed, Time};
use hol_network::{Network, Tap, Topology};
use hol_scenario::{
    BackgroundFlow, FIRST_CLIENT_PORT, Flow, FlowLimits, OnwardFlow, OnwardLinks, Scenario, ScenarioError,
    server_port, stream_layout,
};
use hol_stack::TransportSpec;
use hol_workloads::{ENDLESS, Host, Processor, WorkloadSpec};

use crate::demux::Demux;
use crate::endpoints::{Endpoints, FlowEnds};
use crate::flow_side::FlowSide;
use crate::host_addresses::HostAddresses;
use crate::running_flow::RunningFlow;
use crate::simulation::Simulation;
use crate::wake_ups::WakeUps;

/// Returns the simulation of `scenario` at the start of the run. Its first flow is the measured one. Background flows
/// follow, and then the flows of requests that servers send to other servers.
pub(crate) fn simulation<'t>(
    scenario: &Scenario,
    seed: Seed,
    tap: Option<&'t mut dyn Tap>,
) -> Result<Simulation<'t>, ScenarioError> {
    let topology = Topology::new(&scenario.network)?;
    let (wake_ups, background) = (WakeUps::default(), scenario.background_flows(seed).count());
    let mut links = scenario.link_onward_flows(background, |flow| wake_ups.callback(flow)).into_iter();
    let mut builder = Builder {
        topology: &topology,
        processors: scenario.processors(),
        hosts: Vec::new(),
        running_flows: Vec::new(),
        first_client_port: FIRST_CLIENT_PORT,
    };
    builder.hosts.resize_with(topology.node_count(), Demux::default);
    let mut add = |transport, workload: &WorkloadSpec, messages, seed| {
        let links = links.next().expect("each flow has links");
        builder.add(transport, workload, messages, seed, links);
    };
    add(&scenario.transport, &scenario.measured_workload(seed), scenario.messages, seed);
    for BackgroundFlow { transport, workload, messages, seed } in scenario.background_flows(seed) {
        add(transport, &workload, messages, seed);
    }
    for OnwardFlow { transport, workload, seed } in scenario.onward_flows(seed) {
        add(transport, &workload, ENDLESS, seed);
    }
    let Builder { hosts, running_flows, first_client_port, .. } = builder;
    let network = Network::new(&topology, seed, tap);
    let wake_ups = (!scenario.onward.is_empty()).then_some(wake_ups);
    let host_addresses = HostAddresses::new(&topology);
    Ok(Simulation::new(network, host_addresses, hosts, running_flows, first_client_port, wake_ups))
}

/// Builds a simulation.
struct Builder<'a> {
    topology: &'a Topology,
    /// The processors of nodes with a `service` time, by name.
    processors: BTreeMap<&'a str, Processor>,
    /// The endpoints of each node.
    hosts: Vec<Demux>,
    running_flows: Vec<RunningFlow>,
    /// The lowest client port that no flow has reserved.
    first_client_port: u16,
}

impl Builder<'_> {
    fn add(
        &mut self,
        transport: &TransportSpec,
        workload: &WorkloadSpec,
        messages: u64,
        seed: Seed,
        OnwardLinks { onward_client, pending_requests }: OnwardLinks,
    ) {
        let [client, server] = [workload.client_node(), workload.server_node()]
            .map(|name| self.topology.node(name).expect("the scenario was checked"));
        let index = self.running_flows.len();
        let (port, first_client_port) = (server_port(index), self.first_client_port);
        self.first_client_port = first_client_port.saturating_add(transport.connections());
        if workload.listens {
            self.hosts[usize::from(server.0)].listen(port, index);
        }
        let ends = FlowEnds { client, server, port, first_client_port };
        let endpoints = Endpoints::new(transport, self.topology, ends, seed);
        let lanes = stream_layout(transport);
        let flow_side = |application, node: &str| {
            let application = match self.processors.get(node).cloned() {
                Some(processor) => processor.run(application),
                None => application,
            };
            FlowSide::new(application, endpoints.framing(workload.framing_fn(lanes)))
        };
        let client = match onward_client {
            Some(onward_client) => workload.onward_client(lanes, onward_client, seed),
            None => workload.client(lanes, messages, seed),
        };
        let server = workload.server(lanes, messages, Host { pending_requests, ..Host::default() });
        let sides = [flow_side(client, workload.client_node()), flow_side(server, workload.server_node())];
        let flow = Flow::new(FlowLimits::new(workload, transport, Time::ZERO + workload.start));
        let ledger_join = workload.ledger_join(transport.may_lose_messages());
        self.running_flows.push(RunningFlow::new(sides, flow, endpoints, ledger_join));
    }
}
