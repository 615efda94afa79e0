//! The model world: endpoints and workloads on simulated links under a virtual clock.
//!
//! [`run`] puts a [`Scenario`] together and lets it run to its end: hosts with endpoints, the flow that is measured
//! and those of the background, and the network between them. Applications answer as soon as they have read
//! (`wakeup` after the arrival), and a host takes no time to handle a packet; both are limits of the model.

mod build;
mod channel;
mod connection;
mod demux;
mod flow;
mod scenario;
mod world;

pub use build::flow_of;
use hol_base::{Digester, Duration, Seed};
use hol_measure::Transfer;
use hol_network::Topology;
pub use hol_network::{Crossing, Drops, Fate, Tap, TapPoint};
use hol_stack::{Kind, MetricsCache, Protocol, TransportSpec};
use hol_transport::Reliability;
use hol_workloads::WorkloadSpec;
pub use scenario::{Background, BackgroundFlow, BackgroundRun, Run, Scenario, ScenarioError, Stopped};

use crate::flow::{Flow, Role};
use crate::world::World;

/// How long a run goes on after the last message was scheduled, at least.
const GRACE: Duration = Duration::from_secs(120);

/// So long a silence at the end settles what a transport without guarantees still owes.
pub const SILENCE: Duration = Duration::from_secs(10);

/// How long a run goes on after the last message of `workload` was scheduled: as long as one may be late, or 120 s.
pub fn grace(workload: &WorkloadSpec) -> Duration {
    GRACE.max(workload.late_limit)
}

/// Runs `scenario` in the model world; the same scenario and seed give the same run.
pub fn run(scenario: &Scenario, seed: Seed, tap: Option<&mut dyn Tap>) -> Result<Run, ScenarioError> {
    let mut world = build::world(scenario, seed, tap)?;
    let ended = world.run();
    let stopped = world.measured().stopped.expect("a run ends when its flow has");
    let background = background(scenario, seed, &mut world);
    let closed = if stopped == Stopped::Finished { world.close() } else { None };

    let flow = world.measured();
    flow.client.application.give_up(ended);
    let connect_time = flow.connect_time();
    let records = flow.records(&scenario.workload, gives_up(&scenario.transport));
    let mut digester = Digester::new();
    records.iter().for_each(|record| record.digest(&mut digester));
    Ok(Run {
        digest: digester.finish(),
        packets: world.packets(),
        drops: world.drops(),
        client: world.statistics(Role::Client),
        server: world.statistics(Role::Server),
        connect_time,
        ended,
        closed,
        stopped,
        background,
        records,
    })
}

/// Refuses what this world does not have.
pub fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    possible(&scenario.transport, &scenario.workload)?;
    for (index, entry) in scenario.background.iter().enumerate() {
        possible(&entry.transport, &entry.workload)
            .map_err(|problem| ScenarioError::Background { index, problem: Box::new(problem) })?;
    }
    Ok(())
}

fn possible(transport: &TransportSpec, workload: &WorkloadSpec) -> Result<(), ScenarioError> {
    match transport.protocol() {
        Protocol::Mptcp { .. } => Err(ScenarioError::NotInModel("mptcp")),
        Protocol::Tcp { metrics_cache, .. } if *metrics_cache != MetricsCache::Off => {
            Err(ScenarioError::NotInModel("metrics_cache"))
        }
        _ if !workload.filter.is_none() => Err(ScenarioError::NoFilter),
        _ => Ok(()),
    }
}

/// What became of the background so far; closing the measured flow ends it.
fn background(scenario: &Scenario, seed: Seed, world: &mut World<'_>) -> Vec<BackgroundRun> {
    if scenario.background.is_empty() {
        return Vec::new();
    }
    let transfer = Transfer::of(&world.measured().records(&scenario.workload, false));
    let become_of = |(spec, flow): (BackgroundFlow<'_>, &Flow)| {
        let records = flow.records(&spec.workload, gives_up(spec.transport));
        BackgroundRun {
            connect_time: flow.connect_time(),
            octets: transfer.map_or(0, |meanwhile| meanwhile.octets(&records)),
            stopped: flow.stopped,
            records,
        }
    };
    scenario.background_flows(seed).zip(world.background()).map(become_of).collect()
}

impl Scenario {
    /// Refuses a scenario that contradicts itself.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let topology = Topology::new(&self.network)?;
        if self.messages == 0 {
            return Err(ScenarioError::NoMessages);
        }
        check_flow(&self.workload, &self.transport, &topology)?;
        let mut connections = usize::from(self.transport.connections());
        for (index, Background { workload, transport, messages, count, .. }) in
            self.background.iter().enumerate()
        {
            let some = if *messages == Some(0) { Err(ScenarioError::NoMessages) } else { Ok(()) };
            some.and_then(|()| check_flow(workload, transport, &topology))
                .map_err(|problem| ScenarioError::Background { index, problem: Box::new(problem) })?;
            connections += usize::from(*count) * usize::from(transport.connections());
        }
        if connections > build::CLIENT_PORTS {
            return Err(ScenarioError::TooManyConnections(connections, build::CLIENT_PORTS));
        }
        Ok(())
    }

    /// The names of all interfaces, in the order of [`TapPoint::interface`].
    pub fn interfaces(&self) -> Result<Vec<String>, ScenarioError> {
        Ok(Topology::new(&self.network)?.interface_names())
    }
}

fn check_flow(
    workload: &WorkloadSpec,
    transport: &TransportSpec,
    topology: &Topology,
) -> Result<(), ScenarioError> {
    workload.check()?;
    for (key, node) in [("from", workload.from()), ("to", workload.to())] {
        if topology.node(node).is_none() {
            let names = topology.node_names();
            let (known, example) = (names.join(", "), names[0].clone());
            return Err(ScenarioError::UnknownEnd { key, node: node.to_owned(), known, example });
        }
    }
    if workload.from() == workload.to() {
        return Err(ScenarioError::SameEnds(workload.from().to_owned()));
    }
    if transport.kind() == Kind::Udp && workload.rate().is_none() && !workload.waits_for_replies() {
        return Err(ScenarioError::NothingSetsThePace);
    }
    if workload.waits_for_replies() && gives_up(transport) {
        return Err(ScenarioError::PingpongWithoutReliability);
    }
    Ok(())
}

/// Whether the transport may give messages up.
fn gives_up(transport: &TransportSpec) -> bool {
    match transport.protocol() {
        Protocol::Sctp { reliability, .. } => *reliability != Reliability::Full,
        Protocol::Udp { .. } => true,
        Protocol::Tcp { .. } | Protocol::Mptcp { .. } => false,
    }
}
