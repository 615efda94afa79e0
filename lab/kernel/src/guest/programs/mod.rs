//! Runs the user's programs, each in the container of its node: services before the run, the others during it.
//!
//! `protocol_swap` gives the programs' sockets the scenario's transport (`btf` finds the kernel's function for that),
//! `container` is the file system and the namespaces of a node, `init_process` its first process, `control_group` holds
//! a program and all processes that it starts, `process` starts a program, `run_state` starts and stops programs that
//! are due, `readiness` checks whether a service is ready, `records` and `output` collect the results. `shell` runs
//! command lines of an interactive session; `shell_state` passes the directory and the variables from one line to the
//! next.

mod btf;
mod container;
mod control_group;
pub(super) mod init_process;
mod output;
mod process;
mod protocol_swap;
mod readiness;
mod records;
mod run_state;
mod shell;
mod shell_state;

use std::collections::BTreeMap;
use std::time::Duration as StdDuration;

use hol_network::NodeId;
use hol_scenario::{Program, Scenario};
use hol_sockets::{FlowRun, StopSignal};
use hol_workloads::WorkloadKind;
use nix::sys::prctl::set_timerslack;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clock::{VirtualInstant, wait, wall_clock_ns};
use super::topology::Topology;
use super::{GuestError, host_channel};
use crate::netem::BuildableNetwork;
use container::Container;
pub(super) use output::ProgramOutput;
use process::Process;
use protocol_swap::ProtocolSwap;
pub(super) use run_state::Programs;
use run_state::{describe, to_std};
pub(super) use shell::Shell;

/// The longest time that a service may take until it is ready.
const READY_LIMIT: StdDuration = StdDuration::from_secs(30);
const CHECK_INTERVAL: StdDuration = StdDuration::from_millis(1);
/// The time between SIGTERM and SIGKILL when a program is to end.
const TERMINATION_TIME: StdDuration = StdDuration::from_secs(2);

impl<'s> Programs<'s> {
    /// Creates the containers, and starts the services one after the other; returns `None` if the scenario has no
    /// programs.
    pub(super) fn begin(
        topology: &Topology,
        plan: &BuildableNetwork,
        scenario: &'s Scenario,
    ) -> Result<Option<Self>, GuestError> {
        if scenario.programs.is_empty() {
            return Ok(None);
        }
        // Wake-ups may otherwise come 50 µs late.
        set_timerslack(1)?;
        container::mount_root(host_channel::current().root_device()?)?;
        control_group::mount_tree()?;
        let hosts = hosts_file(plan);
        let mut containers = BTreeMap::new();
        for Program { node, .. } in &scenario.programs {
            if !containers.contains_key(node.as_str()) {
                let id = plan.network.node(node).ok_or("the node of a program is not in the network")?;
                containers.insert(node.as_str(), Container::make(node, &topology.node(id).file, &hosts)?);
            }
        }
        let processes = scenario.programs.iter().map(|_| None).collect();
        let swap = ProtocolSwap::activate(scenario.transport.kind())?;
        let mut programs = Self { scenario, containers, processes, overdue: Vec::new(), _swap: swap };
        programs.start_services()?;
        Ok(Some(programs))
    }

    fn start_services(&mut self) -> Result<(), GuestError> {
        for index in 0..self.scenario.programs.len() {
            let program = &self.scenario.programs[index];
            let Some(ready) = &program.ready else { continue };
            wait(to_std(program.start))?;
            self.start(index)?;
            let (processes, containers) = (&mut self.processes, &self.containers);
            let process = processes[index].as_mut().expect("the service was started");
            let network = &containers[program.node.as_str()].network_namespace;
            let begin = VirtualInstant::now();
            while !readiness::is_ready(ready, process, network)? {
                let failed = process.poll_exit()?.and_then(|status| status.problem());
                let late = (begin.elapsed() > READY_LIMIT)
                    .then(|| format!("was not ready after {} s", READY_LIMIT.as_secs()));
                if let Some(problem) = failed.or(late) {
                    return Err(format!("{} {problem}{}", describe(program), process.last_lines()).into());
                }
                // The interval grows with the waiting time, because a check takes the machine a while.
                wait(CHECK_INTERVAL.max(begin.elapsed() / 100))?;
            }
        }
        Ok(())
    }

    /// Runs the programs until one has failed, the time limit has passed, or `stop` is raised. If `stop` is
    /// `None`, returns at the latest when the awaited programs have ended. Ends the programs that are still
    /// running.
    pub(super) fn run(mut self, stop: Option<&StopSignal>) -> Result<(FlowRun, ProgramOutput), GuestError> {
        let (begin, epoch) = (VirtualInstant::now(), wall_clock_ns());
        let limit = match &self.scenario.workload.kind {
            WorkloadKind::Programs(programs) => to_std(programs.time_limit()),
            _ => StdDuration::MAX,
        };
        while self.step(begin, limit, stop)? {}
        let ended = begin.elapsed();
        self.overdue = self.awaited_programs().filter(|index| !self.has_ended(*index)).collect();
        self.end()?;
        let was_stopped = stop.is_some() && !self.overdue.is_empty();
        Ok((self.flow_run(epoch, ended, limit, was_stopped), self.collect_output(epoch)))
    }

    /// Starts and stops the programs that are due, and waits for the next event; returns whether the run
    /// continues.
    fn step(
        &mut self,
        begin: VirtualInstant,
        limit: StdDuration,
        stop: Option<&StopSignal>,
    ) -> Result<bool, GuestError> {
        let now = begin.elapsed();
        let next = self.start_and_stop_due(now)?.min(limit);
        // Other programs may wait in vain for one that has failed.
        let has_failed =
            |process: &Process| process.status().is_some_and(|status| status.problem().is_some());
        let is_over = self.processes.iter().flatten().any(has_failed);
        // Next to a workload, services run until it ends, even if all other programs have ended.
        let is_done = stop.is_none() && self.awaited_programs().all(|index| self.has_ended(index));
        if is_over || is_done || now >= limit {
            return Ok(false);
        }
        let running = self.processes.iter().flatten().filter(|process| process.status().is_none());
        let mut wanted: Vec<PollFd<'_>> =
            running.map(|process| PollFd::new(process, PollFlags::IN)).collect();
        wanted.extend(stop.map(|stop| PollFd::new(stop, PollFlags::IN)));
        let timeout = Timespec::try_from(next.saturating_sub(begin.elapsed())).ok();
        poll(&mut wanted, timeout.as_ref())?;
        let raised = stop.is_some() && wanted.last().is_some_and(|last| !last.revents().is_empty());
        Ok(!raised)
    }

    /// Sends SIGTERM to running programs, and kills those that do not end in time.
    fn end(&mut self) -> Result<(), GuestError> {
        let running = self.processes.iter_mut().flatten();
        running.filter(|process| !process.was_terminated).try_for_each(Process::terminate)?;
        let until = VirtualInstant::now() + TERMINATION_TIME;
        while self.processes.iter().flatten().any(|process| !process.has_no_processes())
            && VirtualInstant::now() < until
        {
            wait(CHECK_INTERVAL)?;
        }
        self.processes.iter_mut().flatten().try_for_each(Process::kill)
    }
}

/// Returns the content of /etc/hosts: the names and addresses of all nodes.
fn hosts_file(plan: &BuildableNetwork) -> String {
    let names = plan.network.node_names();
    let nodes = (0..).map(NodeId).zip(names);
    let lines =
        nodes.filter_map(|(id, name)| Some(format!("{} {name}\n", plan.network.addresses(id).first()?)));
    std::iter::once("127.0.0.1 localhost\n".to_owned()).chain(lines).collect()
}
