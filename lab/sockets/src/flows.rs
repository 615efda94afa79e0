//! The flows of a scenario: the measured one, and all others on their own threads.

use std::io;
use std::thread;

use hol_base::{Duration, Seed};
use hol_scenario::{FIRST_CLIENT_PORT, OnwardLinks, Sample, Scenario, server_port};
use hol_stack::TransportSpec;
use hol_workloads::{ENDLESS, HostSpec, WorkloadSpec};

use crate::{
    EndAddresses, Ending, FlowParameters, FlowRun, RunLinks, RunStart, SocketsError, StopSignal, WakeSignal,
};

/// The parameters in which the measured, background and onward flows differ.
struct StreamKind<'s> {
    transport: &'s TransportSpec,
    workload: WorkloadSpec,
    messages: u64,
    seed: Seed,
    ending: Ending,
    host: HostSpec,
}

/// Returns the measured flow, background flows, then onward flows. `site` returns the addresses of a node,
/// with a port that no other flow uses.
pub fn flow_parameters(
    scenario: &Scenario,
    seed: Seed,
    site: impl Fn(&str, u16) -> EndAddresses,
) -> Vec<FlowParameters> {
    let Scenario { transport, messages, .. } = scenario;
    let background = scenario.background_flows(seed).map(|flow| StreamKind {
        transport: flow.transport,
        workload: flow.workload,
        messages: flow.messages,
        seed: flow.seed,
        ending: if flow.messages == ENDLESS { Ending::Abort } else { Ending::Close },
        host: HostSpec::default(),
    });
    let onward = scenario.onward_flows(seed).map(|flow| StreamKind {
        transport: flow.transport,
        workload: flow.workload,
        messages: ENDLESS,
        seed: flow.seed,
        ending: Ending::Abort,
        host: HostSpec::default(),
    });
    let measured = StreamKind {
        transport,
        workload: scenario.measured_workload(seed),
        messages: *messages,
        seed,
        ending: Ending::Abort,
        host: scenario.host(scenario.workload.server_node()),
    };
    let mut client_port = FIRST_CLIENT_PORT;
    let processors = scenario.processors();
    let parameters = |(index, own): (usize, StreamKind<'_>)| {
        let StreamKind { transport, workload, messages, seed, ending, host } = own;
        let ends = [workload.client_node(), workload.server_node()];
        let processors = ends.map(|name| processors.get(name).cloned());
        let [client, server] = [site(ends[0], client_port), site(ends[1], server_port(index))];
        client_port = client_port.saturating_add(transport.connections());
        let (transport, server_host) = (transport.clone(), host);
        FlowParameters {
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
            is_batching: false,
            reports_receive_time: false,
        }
    };
    [measured].into_iter().chain(background).chain(onward).enumerate().map(parameters).collect()
}

/// The results of all flows; times of records count from the start of the run.
#[derive(Debug)]
pub struct FlowRuns {
    /// When the run started, in ns since 1970.
    pub epoch: u64,
    /// The measured flow, background flows, then onward flows.
    pub flows: Vec<FlowRun>,
}

impl FlowRuns {
    /// Runs the first flow with `measured`, and each other flow with `other` on its own thread. Ends when `stop` is
    /// signalled or the first flow has ended. Each flow is sampled once per `interval`, if given.
    pub fn of<T, E: From<SocketsError> + From<io::Error>>(
        scenario: &Scenario,
        flow_parameters: &[FlowParameters],
        (beginning, stop): (&RunStart, &StopSignal),
        interval: Option<Duration>,
        other: impl Fn(usize, RunLinks<'_>) -> Result<FlowRun, SocketsError> + Sync,
        measured: impl FnOnce(RunLinks<'_>) -> Result<(FlowRun, T), E>,
    ) -> Result<(Self, T), E> {
        let mut run_links =
            run_links(scenario, flow_parameters.len(), stop, beginning, interval)?.into_iter().enumerate();
        let (_, own) = run_links.next().expect("a scenario has a flow that is measured");
        if flow_parameters.iter().all(|parameters| !parameters.workload.start.is_zero()) {
            // Otherwise events before the first flow would wait for it.
            beginning.begin();
        }
        let (run, others, raised) = thread::scope(|scope| {
            let other = &other;
            let others: Vec<_> =
                run_links.map(|(flow, run_links)| scope.spawn(move || other(flow, run_links))).collect();
            let run = measured(own);
            let raised = stop.raise();
            let ended: Vec<_> =
                others.into_iter().map(|other| other.join().expect("a run does not panic")).collect();
            (run, ended, raised)
        });
        let (run, result) = run?;
        raised?;
        let mut flows = vec![run];
        flows.extend(others.into_iter().collect::<Result<Vec<_>, SocketsError>>()?);
        Ok((Self::with_times_of_run(flows, flow_parameters), result))
    }

    /// Converts the times of flows to times since the start of the run. The times of each flow count from its
    /// first attempt to connect; the run starts at the earliest first attempt minus the start time of that
    /// flow.
    pub(crate) fn with_times_of_run(mut flows: Vec<FlowRun>, flow_parameters: &[FlowParameters]) -> Self {
        let due = flow_parameters.iter().map(|parameters| parameters.workload.start.as_nanos());
        let epoch =
            flows.iter().zip(due).map(|(run, due)| run.epoch.saturating_sub(due)).min().unwrap_or_default();
        for (flow, run) in (0..).zip(&mut flows) {
            let late = Duration::from_nanos(run.epoch.saturating_sub(epoch));
            run.records.iter_mut().for_each(|record| *record = record.shifted_by(late));
            run.samples.iter_mut().for_each(|sample| *sample = sample.with_flow(flow, late));
            run.ended += late;
            run.run_end = run.run_end.clone().shifted_by(late);
        }
        Self { epoch, flows }
    }
}

impl FlowRuns {
    /// Takes the samples of all senders, ascending in time.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        let mut all: Vec<Sample> =
            self.flows.iter_mut().flat_map(|run| std::mem::take(&mut run.samples)).collect();
        all.sort_by_key(|sample| sample.at);
        all
    }
}

/// Returns the links of each flow to the other flows.
fn run_links<'s>(
    scenario: &Scenario,
    flows: usize,
    stop: &'s StopSignal,
    beginning: &'s RunStart,
    interval: Option<Duration>,
) -> io::Result<Vec<RunLinks<'s>>> {
    let run_links = shared_requests(scenario, flows)?.into_iter().enumerate();
    let run_links = run_links.map(
        |(flow, SharedRequests { links: OnwardLinks { onward_client, pending_requests }, wake_signal })| {
            RunLinks {
                stop: (flow > 0).then_some(stop),
                onward_client,
                pending_requests,
                wake_signal,
                beginning: Some(beginning),
                interval,
            }
        },
    );
    Ok(run_links.collect())
}

/// The pending requests shared by a flow's applications, and the signal that wakes them.
pub(crate) struct SharedRequests {
    pub(crate) links: OnwardLinks,
    pub(crate) wake_signal: Option<WakeSignal>,
}

/// Returns, for each flow, the requests that its applications share.
pub(crate) fn shared_requests(scenario: &Scenario, flows: usize) -> io::Result<Vec<SharedRequests>> {
    let wake_signals = (0..flows).map(|_| WakeSignal::new()).collect::<io::Result<Vec<WakeSignal>>>()?;
    let background = flows - 1 - scenario.onward.len();
    let links = scenario
        .link_onward_flows(background, |flow| wake_signals[flow].waker())
        .into_iter()
        .zip(&wake_signals);
    let shared_requests = links.map(|(links, wake_signal)| {
        let wake_signal =
            (links.onward_client.is_some() || links.pending_requests.is_some()).then(|| wake_signal.clone());
        SharedRequests { links, wake_signal }
    });
    Ok(shared_requests.collect())
}
