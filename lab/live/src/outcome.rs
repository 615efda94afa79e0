//! The result of a run: the measurement, or a failure.

use std::time::Duration;

use hol_measure::Transfer;
use hol_scenario::{BackgroundRun, Run, RunEnd, RunError, RunSummary, Scenario, WorldReport};
use hol_sockets::{FlowRun, FlowRuns, SocketsError};

use crate::host_properties::{self, Host};
use crate::warnings::{warn_of_host_load, warn_of_socket_waits};

/// The interval at which an observer is asked whether the run is to continue.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Converts the measurement to the form common to all worlds.
pub(crate) fn to_run(mut runs: FlowRuns, scenario: &Scenario) -> Run {
    let samples = runs.take_samples();
    let flows = runs.flows;
    let counts = || flows.iter().flat_map(|flow| [flow.client, flow.server]);
    let packets = counts().map(|counts| counts.packets_sent).sum();
    let mut world_report = world_report(scenario, &flows[0]);
    world_report.add_caution(warn_of_host_load(&flows[0].records));
    world_report.add_caution(warn_of_socket_waits(&flows[0].records, &world_report.waited));
    let mut flows = flows.into_iter();
    let FlowRun { records, connected, ended, run_end, .. } =
        flows.next().expect("the first flow is the measured one");
    let transfer = Transfer::of(&records);
    let beside = flows.map(|flow| (background_run(transfer, &flow), flow.records));
    let (mut background, background_records): (Vec<_>, _) = beside.unzip();
    let onward = background.split_off(background.len() - scenario.onward.len());
    let summary = RunSummary {
        // Sockets report only when a message was written and when it was delivered.
        has_delivery_times: false,
        packets,
        drops: None,
        marked: None,
        endpoints: None,
        connect_time: connected.map(since_start),
        ended,
        closed: None,
        run_end: scenario.measured_flow_end(run_end, onward.into_iter().map(|flow| flow.run_end)),
        background,
        world_report: Some(Box::new(world_report)),
        files: Vec::new(),
    };
    Run { summary, records, background_records, samples }
}

fn since_start(time: hol_base::Time) -> hol_base::Duration {
    hol_base::Duration::from_nanos(time.as_nanos())
}

fn background_run(transfer: Option<Transfer>, flow: &FlowRun) -> BackgroundRun {
    let run_end: Option<RunEnd> = (!flow.was_stopped).then(|| flow.run_end.clone());
    BackgroundRun::from_records(transfer, &flow.records, flow.connected.map(since_start), run_end)
}

fn world_report(scenario: &Scenario, measured: &FlowRun) -> WorldReport {
    let (host, sysctls) = (Host::current(), host_properties::settings(scenario));
    WorldReport {
        provenance: host.to_string(),
        caution: host_properties::difference_from_stack(scenario, &sysctls),
        kernel: host.kernel,
        clocksource: host.clocksource,
        sysctls,
        retransmissions: measured.client.retransmissions + measured.server.retransmissions,
        waited: measured.read_delays(),
        ..WorldReport::default()
    }
}

/// Creates the error of a failed run. Features that no machine supports have been rejected before.
pub(crate) fn run_error(problem: &SocketsError) -> RunError {
    RunError::Failed { problem: problem.to_string(), log: String::new() }
}
