//! Runs the flows of a job: the measured one, and all others in threads of their own.

use std::fs::File;
use std::io;
use std::thread;
use std::time::Duration;

use hol_base::{Duration as Span, Seed, Time};
use hol_measure::Record;
use hol_scenario::{RunEnd, Scenario, Side};
use hol_sockets::{
    EndAddresses, FlowParameters, FlowRun, FlowRuns, RunLinks, RunStart, SocketsError, StopSignal,
};
use nix::sched::{CloneFlags, setns};

use super::GuestError;
use super::clock::wait;
use super::programs::{ProgramOutput, Programs};
use super::topology::Topology;
use super::variables::is_local_kernel;
use crate::job::FlowReport;

/// The flows, and the network namespaces of each flow's client and server.
#[derive(Debug)]
pub(super) struct Flows<'t> {
    flow_parameters: Vec<FlowParameters>,
    networks: Vec<[&'t File; 2]>,
}

/// Returns the measured flow, then the background flows, then the flows of requests that a server sends to other
/// servers before it replies (`[[onward]]`). Each flow has its own ports.
pub(super) fn all_flows<'t>(
    topology: &'t Topology,
    network: &hol_network::Topology,
    scenario: &Scenario,
    seed: Seed,
) -> Flows<'t> {
    let node = |name: &str| network.node(name).expect("the host has checked the scenario");
    let mut flow_parameters = hol_sockets::flow_parameters(scenario, seed, |name, port| EndAddresses {
        addresses: network.addresses(node(name)),
        port,
    });
    if is_local_kernel() {
        // Delays of the socket layer take real time here, as in the live world.
        flow_parameters
            .iter_mut()
            .for_each(|flow| (flow.is_batching, flow.reports_receive_time) = (true, true));
    }
    let networks = flow_parameters.iter().map(|FlowParameters { workload, .. }| {
        [workload.client_node(), workload.server_node()].map(|name| &topology.node(node(name)).file)
    });
    Flows { networks: networks.collect(), flow_parameters }
}

impl Flows<'_> {
    fn run(&self, flow: usize, links: RunLinks<'_>) -> Result<FlowRun, SocketsError> {
        let (parameters, [client, server]) = (&self.flow_parameters[flow], self.networks[flow]);
        wait(Duration::from_nanos(parameters.workload.start.as_nanos())).map_err(io::Error::from)?;
        hol_sockets::run_linked(parameters, links, &mut |end| {
            let network = if end == Side::Client { client } else { server };
            Ok(setns(network, CloneFlags::CLONE_NEWNET)?)
        })
    }
}

/// The results of all flows, and of the user's programs.
#[derive(Debug)]
pub(super) struct FlowResults {
    pub(super) runs: FlowRuns,
    /// Results of the user's programs.
    pub(super) output: ProgramOutput,
}

/// Runs all flows until the first one, which is measured, has ended. If the scenario has only programs and no measured
/// flow, runs until the programs have ended.
pub(super) fn run(
    flows: &Flows<'_>,
    scenario: &Scenario,
    programs: Option<Programs<'_>>,
    beginning: &RunStart,
    interval: Option<Span>,
) -> Result<FlowResults, GuestError> {
    let stop = StopSignal::new()?;
    let measured = |own: RunLinks<'_>| match programs {
        Some(programs) if scenario.runs_programs() => programs.run(None),
        Some(programs) => run_programs_meanwhile(programs, &stop, || flows.run(0, own)),
        None => Ok((flows.run(0, own)?, ProgramOutput::default())),
    };
    let other = |flow, links: RunLinks<'_>| flows.run(flow, links);
    let (runs, output) =
        FlowRuns::of(scenario, &flows.flow_parameters, (beginning, &stop), interval, other, measured)?;
    Ok(FlowResults { runs, output })
}

/// Runs `programs` until the measured flow has ended. If a program fails, the run fails.
fn run_programs_meanwhile(
    programs: Programs<'_>,
    stop: &StopSignal,
    measured: impl FnOnce() -> Result<FlowRun, SocketsError>,
) -> Result<(FlowRun, ProgramOutput), GuestError> {
    let (run, raised, programs_run) = thread::scope(|scope| {
        let beside = scope.spawn(|| programs.run(Some(stop)).map_err(|e| e.to_string()));
        let run = measured();
        let raised = stop.raise();
        (run, raised, beside.join().expect("the thread that runs programs does not panic"))
    });
    let (mut run, (programs_run, output)) = (run?, programs_run?);
    raised?;
    if run.run_end == RunEnd::Finished && programs_run.run_end != RunEnd::Finished {
        run.run_end = programs_run.run_end;
    }
    Ok((run, output))
}

impl FlowResults {
    /// Returns the measured flow.
    pub(super) fn measured(&self) -> &FlowRun {
        &self.runs.flows[0]
    }

    /// Returns a report on each flow.
    pub(super) fn reports(&self) -> Vec<FlowReport> {
        let report = |run: &FlowRun| FlowReport {
            connected: run.connected.map(Time::as_nanos),
            ended: run.ended.as_nanos(),
            run_end: run.run_end.clone(),
            was_stopped: run.was_stopped,
        };
        self.runs.flows.iter().map(report).collect()
    }

    /// Returns the TLS secrets of all flows.
    pub(super) fn secrets(&self) -> String {
        self.runs.flows.iter().map(|run| run.secrets.as_str()).collect()
    }

    /// Removes and returns the records of all flows, by flow.
    pub(super) fn take_records(&mut self) -> Vec<Vec<Record>> {
        self.runs.flows.iter_mut().map(|run| std::mem::take(&mut run.records)).collect()
    }
}
