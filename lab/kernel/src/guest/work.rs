//! Runs one job, from the seed to the records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hol_base::{Duration, Seed};
use hol_network::NodeId;
use hol_scenario::{Scenario, WorldReport};
use hol_sockets::{
    RunStart, Sysctl, clocksource, kernel_setting, kernel_version, requested_sysctls, setting_path, sysctls,
};
use hol_stack::ProtocolKind;

use super::capture::Capture;
use super::namespace;
use super::programs::{Programs, Shell};
use super::queue_sampler::QueueSampler;
use super::schedule::Schedule;
use super::topology::{self, Topology};
use super::variables::is_local_kernel;
use super::{GuestError, flow, link_baseline, timer_wheel};
use crate::job::{Job, JobResult, Report};
use crate::mailbox::MailboxContent;
use crate::{netem, packed_records, packed_samples};

/// Performs `job` in the guest and returns its results.
pub(super) fn run(job: &Job) -> Result<MailboxContent, GuestError> {
    let seed = Seed(job.seed);
    let scenario = &job.scenario;
    let mut plan = netem::plan(&scenario.network)?;
    if job.shell {
        plan.allow_all_changes();
    }
    let mut topology = topology::build(&plan, seed, &scenario.captured_nodes())?;
    let (sysctls, lacking) = set_sysctls(&topology, &plan, scenario)?;
    let floor = link_baseline::measure_baselines(&topology, &plan)?;
    topology.install_settings()?;
    let before = (topology.sent_packets()?, topology.packet_counts(&plan)?);
    let moves = topology.attachment_changes(&plan, has_mptcp(scenario))?;
    let reroutes = topology.reroutes(&plan)?;
    let queues = if job.series_ns.is_some() { topology.queues(&plan)? } else { Vec::new() };
    let chains = topology.take_chains();
    let flows = flow::all_flows(&topology, &plan.network, scenario, seed);
    let programs = Programs::begin(&topology, &plan, scenario)?;
    // Before packets are captured, because IPv6 sends packets of its own now and then.
    if !is_local_kernel() && !scenario.runs_programs() {
        timer_wheel::wait_for_slots()?;
    }
    let capture = (job.capture || scenario.runs_programs())
        .then(|| Capture::start(&topology, plan.mtu, job))
        .transpose()?;
    // The time of a run of programs starts now; a workload sets its own start.
    let beginning = if scenario.runs_programs() { RunStart::now() } else { RunStart::default() };
    let schedule = Schedule::new(beginning.clone(), plan.changes_of_run(seed), chains, moves, reroutes);
    if job.shell {
        let (programs, capture) = programs
            .zip(capture)
            .ok_or("an interactive session needs a scenario with programs, but this one has none")?;
        Shell::begin(programs, schedule, capture, seed).serve()?;
        return Ok(MailboxContent {
            result_json: JobResult::ShellEnded.to_octets(),
            ..MailboxContent::default()
        });
    }
    schedule.spawn_thread()?;
    let interval = job.series_ns.map(Duration::from_nanos);
    let sampler =
        interval.map(|interval| QueueSampler::start(queues, interval, beginning.clone())).transpose()?;
    let mut outcome = flow::run(&flows, &job.scenario, programs, &beginning, interval)?;
    let sampler = sampler.map_or(Vec::new(), |sampler| sampler.take_samples());
    let (packets_seen, caution) = match capture.map(|capture| capture.finish(outcome.runs.epoch)) {
        Some(Err(problem)) if job.capture => return Err(format!("{problem}; capture fewer messages").into()),
        // The run of programs remains valid without packets: their output is a result, too.
        Some(Err(problem)) => (
            Vec::new(),
            Some(format!(
                "{problem}, so connections and requests are not measured; capture fewer packets per run"
            )),
        ),
        Some(Ok(packets)) => (packets, None),
        None => (Vec::new(), None),
    };
    let output = std::mem::take(&mut outcome.output);
    let run = outcome.measured();
    let mut world_report = WorldReport {
        kernel: kernel_version(),
        // The host adds the engine.
        provenance: String::new(),
        caution,
        clocksource: clocksource(),
        sysctls,
        link_counters: topology.link_counters(&plan, &before.1)?,
        floor,
        filter: run.filter,
        retransmissions: run.client.retransmissions + run.server.retransmissions,
        waited: run.read_delays(),
        programs: output.results,
        ..WorldReport::default()
    };
    world_report.add_caution(output.caution);
    world_report.add_caution(lacking);
    let packets = topology.sent_packets()?.saturating_sub(before.0);
    let secrets = if job.capture { outcome.secrets() } else { String::new() };
    let report = Report { world_report, flows: outcome.reports(), packets, secrets };
    let mut samples = outcome.runs.take_samples();
    samples.extend(sampler);
    samples.sort_by_key(|sample| sample.at);
    Ok(MailboxContent {
        result_json: JobResult::Done(Box::new(report)).to_octets(),
        samples: packed_samples::pack(&samples),
        records: packed_records::pack(&outcome.take_records()),
        packets: packets_seen,
        files: output.files,
    })
}

/// Sets the sysctls of both ends of every flow. Returns the values that the kernel reports afterwards for the measured
/// flow, and a warning about sysctls that are missing but were not requested. An older kernel without such a sysctl
/// behaves as Linux did before the sysctl existed.
fn set_sysctls(
    topology: &Topology,
    plan: &netem::BuildableNetwork,
    scenario: &Scenario,
) -> Result<(BTreeMap<String, String>, Option<String>), GuestError> {
    let background = scenario.background.iter().filter(|entry| entry.count > 0);
    let background = background.map(|entry| (&entry.transport, &entry.workload));
    let kernel = kernel_version();
    let (mut settled, mut joined, mut lacking) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let onward = scenario.onward.iter().map(|entry| (&entry.transport, &entry.workload));
    // The measured flow is last, so that the returned settings are its own.
    for (transport, workload) in background.chain(onward).chain([(&scenario.transport, &scenario.workload)]) {
        settled.clear();
        for needed in sysctls(transport, &kernel)? {
            let Sysctl { name, value } = &needed;
            // On the user's own machine a setting of all nodes is not changed; the host has checked its value.
            let is_changed = !(is_local_kernel() && name.starts_with("module/"));
            for end in [workload.client_node(), workload.server_node()].into_iter().filter(|_| is_changed) {
                topology.node(node(plan, end)).enter()?;
                let made = namespace::set_sysctl(name, value);
                if made.is_err()
                    && is_older_than(name)
                    && !requested_sysctls(transport, &kernel)?.contains(&needed)
                {
                    lacking.insert(*name);
                } else {
                    made?;
                }
            }
            settled.extend(kernel_setting(name).map(|value| ((*name).to_owned(), value)));
        }
        // Addresses of a client that moves are added and removed by the schedule instead.
        if transport.kind() == ProtocolKind::Mptcp && !scenario.network.client_moves() {
            let paths = &scenario.network.paths;
            topology.set_up_subflows(plan, node(plan, workload.client_node()), false, paths)?;
            let server = node(plan, workload.server_node());
            topology.set_up_subflows(plan, server, joined.insert(server), paths)?;
        }
    }
    let lacking: Vec<&str> = lacking.into_iter().collect();
    let caution = format!(
        "this kernel does not have the setting {} yet, and behaves as kernels did before it; use a newer kernel",
        lacking.join(", ")
    );
    Ok((settled, (!lacking.is_empty()).then_some(caution)))
}

/// Returns whether the kernel has the directory of the sysctl `name` but not the sysctl. Then the kernel has the
/// feature, but not yet this setting.
fn is_older_than(name: &str) -> bool {
    kernel_setting(name).is_none() && Path::new(&setting_path(name)).parent().is_some_and(Path::exists)
}

fn has_mptcp(scenario: &Scenario) -> bool {
    scenario.flow_specs().any(|flow| flow.transport.kind() == ProtocolKind::Mptcp)
}

fn node(plan: &netem::BuildableNetwork, name: &str) -> NodeId {
    plan.network.node(name).expect("the host has checked the scenario")
}
