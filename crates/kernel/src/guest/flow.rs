//! The flows of a job: the one that is measured, and those of the background on threads of their own.

use std::fs::File;
use std::thread;
use std::time::Duration;

use hol_base::{Seed, Time};
use hol_measure::{Record, Transfer};
use hol_model::Scenario;
use hol_sockets::{End, Ending, Plan, Run, Site, SocketsError, Stop};
use hol_stack::TransportSpec;
use hol_workloads::{ENDLESS, WorkloadSpec};
use nix::sched::{CloneFlags, setns};

use super::Trouble;
use super::topology::Topology;
use crate::job::BackgroundFacts;

/// Where servers listen, and where clients' ports begin: as in the model world.
const SERVER_PORT: u16 = 7626;
const FIRST_CLIENT_PORT: u16 = 49152;

/// A workload and the namespaces of its client and its server.
#[derive(Debug)]
pub(super) struct Flow<'t> {
    pub(super) plan: Plan,
    pub(super) networks: [&'t File; 2],
}

/// The flow that is measured, then those of the background; each has ports of its own.
pub(super) fn all<'t>(
    topology: &'t Topology,
    network: &hol_network::Topology,
    scenario: &Scenario,
    seed: Seed,
) -> Vec<Flow<'t>> {
    let Scenario { transport, workload, messages, .. } = scenario;
    let background = scenario.background_flows(seed);
    let background = background.map(|flow| {
        let ending = if flow.messages == ENDLESS { Ending::Abort } else { Ending::Close };
        (flow.transport, flow.workload, flow.messages, flow.seed, ending)
    });
    let measured = (transport, workload.clone(), *messages, seed, Ending::Abort);
    let mut client_port = FIRST_CLIENT_PORT;
    let flow = |(server_port, (transport, workload, messages, seed, ending)): (
        u16,
        (&TransportSpec, WorkloadSpec, u64, Seed, Ending),
    )| {
        let ends = [workload.from(), workload.to()];
        let ends = ends.map(|name| network.node(name).expect("the host has checked the scenario"));
        let [client, server] = [(ends[0], client_port), (ends[1], server_port)]
            .map(|(end, port)| Site { addresses: topology.addresses(end), port });
        client_port += transport.connections();
        let transport = transport.clone();
        let networks = ends.map(|end| &topology.node(end).file);
        Flow { plan: Plan { transport, workload, messages, seed, client, server, ending }, networks }
    };
    (SERVER_PORT..).zip([measured].into_iter().chain(background)).map(flow).collect()
}

impl Flow<'_> {
    fn run(&self, stop: Option<&Stop>) -> Result<Run, SocketsError> {
        wait(Duration::from_nanos(self.plan.workload.start.as_nanos()));
        let [client, server] = self.networks;
        hol_sockets::run_until(&self.plan, stop, &mut |end| {
            let network = if end == End::Client { client } else { server };
            Ok(setns(network, CloneFlags::CLONE_NEWNET)?)
        })
    }
}

/// What came of all flows; the times of their records count from the beginning of the run.
#[derive(Debug)]
pub(super) struct Outcome {
    /// When the run began, in ns since 1970.
    pub(super) epoch: u64,
    pub(super) measured: Run,
    pub(super) background: Vec<Run>,
}

/// Runs the measured flow, which is the first, and the background until that has ended.
pub(super) fn run(flows: &[Flow<'_>]) -> Result<Outcome, Trouble> {
    let (measured, background) = flows.split_first().ok_or("nothing to run")?;
    let stop = Stop::new()?;
    let (run, others, raised) = thread::scope(|scope| {
        let others: Vec<_> = background.iter().map(|flow| scope.spawn(|| flow.run(Some(&stop)))).collect();
        let run = measured.run(None);
        let raised = stop.raise();
        let ended: Vec<_> =
            others.into_iter().map(|other| other.join().expect("a run does not panic")).collect();
        (run, ended, raised)
    });
    raised?;
    let mut runs = vec![run?];
    runs.extend(others.into_iter().collect::<Result<Vec<_>, SocketsError>>()?);
    // No flow connects before its time has come, and each counts from its own first attempt.
    let due = flows.iter().map(|flow| flow.plan.workload.start.as_nanos());
    let epoch = runs.iter().zip(due).map(|(run, due)| run.epoch - due).min().unwrap_or_default();
    for run in &mut runs {
        let late = hol_base::Duration::from_nanos(run.epoch - epoch);
        run.records.iter_mut().for_each(|record| *record = record.later(late));
    }
    let background = runs.split_off(1);
    Ok(Outcome { epoch, measured: runs.remove(0), background })
}

impl Outcome {
    /// What the guest tells of the background.
    pub(super) fn background(&self) -> Vec<BackgroundFacts> {
        let transfer = Transfer::of(&self.measured.records);
        let facts = |other: &Run| BackgroundFacts {
            connected: other.connected.map(Time::as_nanos),
            octets: transfer.map_or(0, |meanwhile| meanwhile.octets(&other.records)),
            stopped: other.stopped.reason(),
        };
        self.background.iter().map(facts).collect()
    }

    /// The records by flow, the measured one first.
    pub(super) fn into_records(self) -> Vec<Vec<Record>> {
        [self.measured].into_iter().chain(self.background).map(|run| run.records).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "in here time is the machine's virtual time")]
fn wait(time: Duration) {
    thread::sleep(time);
}
