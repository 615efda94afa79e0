//! The flows of a scenario: the one that is measured, and all others on threads of their own.

use std::io;
use std::thread;

use hol_base::{Duration, Seed};
use hol_scenario::{FIRST_CLIENT_PORT, FlowTies, Sample, Scenario, server_port};
use hol_stack::TransportSpec;
use hol_workloads::{ENDLESS, HostSpec, WorkloadSpec};

use crate::{Assignment, Beginning, Bell, Ending, FlowRun, Site, SocketsError, Stop, Ties};

/// What makes a flow another one than its neighbours.
struct Own<'s> {
    transport: &'s TransportSpec,
    workload: WorkloadSpec,
    messages: u64,
    seed: Seed,
    ending: Ending,
    host: HostSpec,
}

/// The flow that is measured, those of the background, then those on which servers ask. `site` says where a node is, given a port
/// that no other flow has.
pub fn assignments(scenario: &Scenario, seed: Seed, site: impl Fn(&str, u16) -> Site) -> Vec<Assignment> {
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
    let assignment = |(index, own): (usize, Own<'_>)| {
        let Own { transport, workload, messages, seed, ending, host } = own;
        let ends = [workload.from(), workload.to()];
        let processors = ends.map(|name| processors.get(name).cloned());
        let [client, server] = [site(ends[0], client_port), site(ends[1], server_port(index))];
        client_port = client_port.saturating_add(transport.connections());
        let (transport, server_host) = (transport.clone(), host);
        Assignment {
            transport,
            workload,
            messages,
            seed,
            client,
            client_moves: scenario.network.client_moves(),
            server,
            server_host,
            processors,
            ending,
            gathers: false,
            stamps: false,
        }
    };
    [measured].into_iter().chain(background).chain(onward).enumerate().map(assignment).collect()
}

/// What came of all flows; the times of their records count from the beginning of the run.
#[derive(Debug)]
pub struct FlowRuns {
    /// When the run began, in ns since 1970.
    pub epoch: u64,
    /// The measured flow, those of the background, then those on which servers ask.
    pub flows: Vec<FlowRun>,
}

impl FlowRuns {
    /// Runs the first flow by `measured`, and each other by `other` on a thread of its own until `stop` is raised: at the latest
    /// when the first has ended, which may tell something beside its run. Each is looked at once in an `interval`, if there is one.
    pub fn of<T, E: From<SocketsError> + From<io::Error>>(
        scenario: &Scenario,
        assignments: &[Assignment],
        (beginning, stop): (&Beginning, &Stop),
        interval: Option<Duration>,
        other: impl Fn(usize, Ties<'_>) -> Result<FlowRun, SocketsError> + Sync,
        measured: impl FnOnce(Ties<'_>) -> Result<(FlowRun, T), E>,
    ) -> Result<(Self, T), E> {
        let mut ties = ties(scenario, assignments.len(), stop, beginning, interval)?.into_iter().enumerate();
        let (_, own) = ties.next().expect("a scenario has a flow that is measured");
        let (run, others, raised) = thread::scope(|scope| {
            let other = &other;
            let others: Vec<_> = ties.map(|(flow, ties)| scope.spawn(move || other(flow, ties))).collect();
            let run = measured(own);
            let raised = stop.raise();
            let ended: Vec<_> =
                others.into_iter().map(|other| other.join().expect("a run does not panic")).collect();
            (run, ended, raised)
        });
        let (run, told) = run?;
        raised?;
        let mut flows = vec![run];
        flows.extend(others.into_iter().collect::<Result<Vec<_>, SocketsError>>()?);
        Ok((Self::since_the_first(flows, assignments), told))
    }

    /// No flow connects before its time has come, and each counts from its own first attempt.
    pub(crate) fn since_the_first(mut flows: Vec<FlowRun>, assignments: &[Assignment]) -> Self {
        let due = assignments.iter().map(|assignment| assignment.workload.start.as_nanos());
        let epoch =
            flows.iter().zip(due).map(|(run, due)| run.epoch.saturating_sub(due)).min().unwrap_or_default();
        for (flow, run) in (0..).zip(&mut flows) {
            let late = Duration::from_nanos(run.epoch.saturating_sub(epoch));
            run.records.iter_mut().for_each(|record| *record = record.later(late));
            run.samples.iter_mut().for_each(|sample| *sample = sample.of_flow(flow, late));
            run.ended += late;
            run.stopped = run.stopped.clone().later(late);
        }
        Self { epoch, flows }
    }
}

impl FlowRuns {
    /// Takes how all senders stood from time to time, ascending in time.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        let mut all: Vec<Sample> =
            self.flows.iter_mut().flat_map(|run| std::mem::take(&mut run.samples)).collect();
        all.sort_by_key(|sample| sample.at);
        all
    }
}

/// What ties each flow to others.
fn ties<'s>(
    scenario: &Scenario,
    flows: usize,
    stop: &'s Stop,
    beginning: &'s Beginning,
    interval: Option<Duration>,
) -> io::Result<Vec<Ties<'s>>> {
    let ties = bonds(scenario, flows)?.into_iter().enumerate();
    let ties = ties.map(|(flow, Bond { tied: FlowTies { asker, desk }, bell })| Ties {
        stop: (flow > 0).then_some(stop),
        asker,
        desk,
        bell,
        beginning: Some(beginning),
        interval,
    });
    Ok(ties.collect())
}

/// What ties the applications of a flow to others, and what wakes them.
pub(crate) struct Bond {
    pub(crate) tied: FlowTies,
    pub(crate) bell: Option<Bell>,
}

/// By flow.
pub(crate) fn bonds(scenario: &Scenario, flows: usize) -> io::Result<Vec<Bond>> {
    let bells = (0..flows).map(|_| Bell::new()).collect::<io::Result<Vec<Bell>>>()?;
    let background = flows - 1 - scenario.onward.len();
    let tied = scenario.tie_flows(background, |flow| bells[flow].ringer()).into_iter().zip(&bells);
    let bonds = tied.map(|(tied, bell)| {
        let bell = (tied.asker.is_some() || tied.desk.is_some()).then(|| bell.clone());
        Bond { tied, bell }
    });
    Ok(bonds.collect())
}
