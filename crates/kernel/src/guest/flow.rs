//! The flows of a job: the one that is measured, and all others on threads of their own.

use std::fs::File;
use std::thread;
use std::time::Duration;

use hol_base::{Seed, Time};
use hol_measure::Record;
use hol_scenario::{FIRST_CLIENT_PORT, Scenario, Stopped, Tied, server_port};
use hol_sockets::{Assignment, Beginning, Bell, End, Ending, FlowRun, Site, SocketsError, Stop, Ties};
use hol_stack::TransportSpec;
use hol_workloads::{ENDLESS, HostSpec, WorkloadSpec};
use nix::sched::{CloneFlags, setns};

use super::Trouble;
use super::programs::{Left, Programs};
use super::topology::Topology;
use crate::job::FlowReport;

/// A workload and the namespaces of its client and its server.
#[derive(Debug)]
pub(super) struct Flow<'t> {
    pub(super) assignment: Assignment,
    pub(super) networks: [&'t File; 2],
}

/// What makes a flow another one than its neighbours.
struct Own<'s> {
    transport: &'s TransportSpec,
    workload: WorkloadSpec,
    messages: u64,
    seed: Seed,
    ending: Ending,
    host: HostSpec,
}

/// The flow that is measured, those of the background, then those on which servers ask; each has ports of its own.
pub(super) fn all<'t>(
    topology: &'t Topology,
    network: &hol_network::Topology,
    scenario: &Scenario,
    seed: Seed,
) -> Vec<Flow<'t>> {
    let Scenario { transport, messages, .. } = scenario;
    let background = scenario.background_flows(seed).map(|flow| Own {
        transport: flow.transport,
        workload: flow.workload,
        messages: flow.messages,
        seed: flow.seed,
        ending: if flow.messages == ENDLESS { Ending::Abort } else { Ending::Close },
        host: HostSpec::default(),
    });
    let onward = scenario.onward_flows(seed).map(|flow| Own {
        transport: flow.transport,
        workload: flow.workload,
        messages: ENDLESS,
        seed: flow.seed,
        ending: Ending::Abort,
        host: HostSpec::default(),
    });
    let measured = Own {
        transport,
        workload: scenario.measured(seed),
        messages: *messages,
        seed,
        ending: Ending::Abort,
        host: scenario.host(scenario.workload.to()),
    };
    let mut client_port = FIRST_CLIENT_PORT;
    let processors = scenario.processors();
    let flow = |(index, own): (usize, Own<'_>)| {
        let Own { transport, workload, messages, seed, ending, host } = own;
        let ends = [workload.from(), workload.to()];
        let processors = ends.map(|name| processors.get(name).cloned());
        let ends = ends.map(|name| network.node(name).expect("the host has checked the scenario"));
        let [client, server] = [(ends[0], client_port), (ends[1], server_port(index))]
            .map(|(end, port)| Site { addresses: topology.addresses(end), port });
        client_port = client_port.saturating_add(transport.connections());
        let (transport, server_host) = (transport.clone(), host);
        let assignment = Assignment {
            transport,
            workload,
            messages,
            seed,
            client,
            client_moves: scenario.network.handover.is_some(),
            server,
            server_host,
            processors,
            ending,
        };
        Flow { assignment, networks: ends.map(|end| &topology.node(end).file) }
    };
    [measured].into_iter().chain(background).chain(onward).enumerate().map(flow).collect()
}

impl Flow<'_> {
    fn run(&self, ties: Ties<'_>) -> Result<FlowRun, SocketsError> {
        wait(Duration::from_nanos(self.assignment.workload.start.as_nanos()));
        let [client, server] = self.networks;
        hol_sockets::run_tied(&self.assignment, ties, &mut |end| {
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
    /// The measured flow, those of the background, then those on which servers ask.
    pub(super) flows: Vec<FlowRun>,
    /// What the user's programs left behind.
    pub(super) left: Left,
}

/// What ties each flow to others.
fn ties<'s>(
    scenario: &Scenario,
    flows: usize,
    stop: &'s Stop,
    beginning: &'s Beginning,
) -> Result<Vec<Ties<'s>>, Trouble> {
    let bells = (0..flows).map(|_| Bell::new()).collect::<Result<Vec<Bell>, _>>()?;
    let background = flows - 1 - scenario.onward.len();
    let tied = scenario.tied(background, |flow| bells[flow].ringer()).into_iter().zip(&bells).enumerate();
    let ties = tied.map(|(flow, (Tied { asker, desk }, bell))| {
        let bell = (asker.is_some() || desk.is_some()).then(|| bell.clone());
        Ties { stop: (flow > 0).then_some(stop), asker, desk, bell, beginning: Some(beginning) }
    });
    Ok(ties.collect())
}

/// Runs the measured flow, which is the first, or programs in its place, and all others until that has ended.
pub(super) fn run(
    flows: &[Flow<'_>],
    scenario: &Scenario,
    programs: Option<Programs<'_>>,
    beginning: &Beginning,
) -> Result<Outcome, Trouble> {
    let (measured, others) = flows.split_first().ok_or("nothing to run")?;
    let stop = Stop::new()?;
    let mut ties = ties(scenario, flows.len(), &stop, beginning)?.into_iter();
    let own = ties.next().unwrap_or_default();
    let (mut programs, mut beside) = (programs, None);
    if !scenario.runs_programs() {
        beside = programs.take();
    }
    let (run, beside, others, raised) = thread::scope(|scope| {
        let others = others.iter().zip(ties).map(|(flow, ties)| scope.spawn(|| flow.run(ties)));
        let others: Vec<_> = others.collect();
        let beside =
            beside.map(|programs| scope.spawn(|| programs.run(Some(&stop)).map_err(|e| e.to_string())));
        let run = match programs {
            Some(programs) => programs.run(None),
            None => measured.run(own).map(|run| (run, Left::default())).map_err(Trouble::from),
        };
        let raised = stop.raise();
        let ended: Vec<_> =
            others.into_iter().map(|other| other.join().expect("a run does not panic")).collect();
        let beside = beside.map(|beside| beside.join().expect("programs do not panic"));
        (run, beside, ended, raised)
    });
    let (mut run, mut left) = run?;
    if let Some(beside) = beside {
        let (told, own) = beside?;
        left = own;
        if run.stopped == Stopped::Finished && told.stopped != Stopped::Finished {
            run.stopped = told.stopped;
        }
    }
    raised?;
    let mut runs = vec![run];
    runs.extend(others.into_iter().collect::<Result<Vec<_>, SocketsError>>()?);
    // No flow connects before its time has come, and each counts from its own first attempt.
    let due = flows.iter().map(|flow| flow.assignment.workload.start.as_nanos());
    let epoch = runs.iter().zip(due).map(|(run, due)| run.epoch - due).min().unwrap_or_default();
    for run in &mut runs {
        let late = hol_base::Duration::from_nanos(run.epoch - epoch);
        run.records.iter_mut().for_each(|record| *record = record.later(late));
        run.ended += late;
        run.stopped = run.stopped.clone().later(late);
    }
    Ok(Outcome { epoch, flows: runs, left })
}

impl Outcome {
    /// The flow that is measured.
    pub(super) fn measured(&self) -> &FlowRun {
        &self.flows[0]
    }

    /// What the guest tells of each.
    pub(super) fn reports(&self) -> Vec<FlowReport> {
        let report = |run: &FlowRun| FlowReport {
            connected: run.connected.map(Time::as_nanos),
            ended: run.ended.as_nanos(),
            stopped: run.stopped.clone(),
            was_stopped: run.was_stopped,
        };
        self.flows.iter().map(report).collect()
    }

    /// The records by flow.
    pub(super) fn take_records(&mut self) -> Vec<Vec<Record>> {
        self.flows.iter_mut().map(|run| std::mem::take(&mut run.records)).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "in here time is the machine's virtual time")]
fn wait(time: Duration) {
    thread::sleep(time);
}
