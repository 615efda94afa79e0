//! The command lines of an interactive session, which run one after another like programs.
//!
//! Virtual time stands still while the guest waits in its channel to the host, because no other thread of the
//! guest runs then.

use std::time::Duration as StdDuration;

use hol_base::{Duration, Seed};
use hol_network::{EventSpec, NetworkSpec};
use hol_scenario::{Command, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::process::{Process, ProgramExit};
use super::run_state::{Programs, to_std};
use super::shell_state;
use crate::guest::GuestError;
use crate::guest::capture::Capture;
use crate::guest::clock::{VirtualInstant, wall_clock_ns};
use crate::guest::host_channel::{self, HostChannel};
use crate::guest::schedule::Schedule;
use crate::netem;
use crate::session_step::{Action, CommandOutcome, GuestMessage, Step, StepResult};

/// The first interval at which a running line is polled for output and for interrupts. The interval grows to a tenth
/// (`INTERVAL_DIVISOR`) of the time for which the line has run; users do not notice such a delay.
const FIRST_INTERVAL: StdDuration = StdDuration::from_millis(10);
const INTERVAL_DIVISOR: u32 = 10;

/// An interactive session in the guest.
#[derive(Debug)]
pub(in crate::guest) struct Shell<'s> {
    programs: Programs<'s>,
    schedule: Schedule,
    capture: Capture,
    /// The network as all changes so far have left it.
    network: NetworkSpec,
    seed: Seed,
    /// When the shell started.
    begin: VirtualInstant,
    /// Wall-clock time at which the session began, in ns since 1970.
    epoch: u64,
    /// The command lines that still have running processes.
    lines: Vec<Process>,
    /// Number of command lines started so far.
    started_lines: usize,
    channel: &'static dyn HostChannel,
}

impl<'s> Shell<'s> {
    /// Starts a session; the time of the session counts from now.
    pub(in crate::guest) fn begin(
        programs: Programs<'s>,
        schedule: Schedule,
        capture: Capture,
        seed: Seed,
    ) -> Self {
        let (begin, epoch) = (VirtualInstant::now(), wall_clock_ns());
        let network = programs.scenario.network.clone();
        let (lines, started, channel) = (Vec::new(), 0, host_channel::current());
        Self {
            programs,
            schedule,
            capture,
            network,
            seed,
            begin,
            epoch,
            lines,
            started_lines: started,
            channel,
        }
    }

    /// Performs steps until the host ends the session.
    pub(in crate::guest) fn serve(mut self) -> Result<(), GuestError> {
        self.send(&GuestMessage::Reply(StepResult::default()))?;
        while let Some(step) = self.channel.next_step()? {
            let step = serde_json::from_slice(&step)?;
            let reply = self.perform(&step)?;
            self.forward_output()?;
            self.remove_finished_lines();
            self.send(&GuestMessage::Reply(reply))?;
        }
        Ok(())
    }

    fn send(&self, message: &GuestMessage) -> Result<(), GuestError> {
        self.channel.send(&message.to_octets())
    }

    fn now(&self) -> Duration {
        in_ns(self.begin.elapsed())
    }

    fn perform(&mut self, Step { action, interrupt_times }: &Step) -> Result<StepResult, GuestError> {
        let mut reply = StepResult { start_time: self.now(), ..StepResult::default() };
        let mut interrupts = interrupt_times.iter().copied().map(to_std);
        match action {
            Action::Run(program) => match self.start(program) {
                Ok(()) => {
                    while let Some(at) = self.run_until(true, None, interrupts.next())? {
                        reply.interrupt_times.push(at);
                        self.lines.last().into_iter().for_each(Process::interrupt);
                    }
                    reply.outcome = self.last_outcome(&program.node)?;
                }
                Err(problem) => reply.refusal = Some(problem.to_string()),
            },
            Action::Wait(time) => {
                let due = to_std(reply.start_time + *time);
                reply.interrupt_times.extend(self.run_until(false, Some(due), interrupts.next())?);
            }
            Action::Change(event) => reply.refusal = self.change(event, reply.start_time)?,
            Action::Packets => match self.capture.finish(self.epoch) {
                Ok(packets) => self.send(&GuestMessage::Packets(packets))?,
                Err(problem) => reply.refusal = Some(problem),
            },
        }
        reply.end_time = self.now();
        Ok(reply)
    }

    /// Starts a command line and appends it to [`lines`](Self::lines).
    fn start(&mut self, program: &Program) -> Result<(), GuestError> {
        let container = self.programs.containers.get(program.node.as_str());
        let container = container.ok_or_else(|| format!("{} has no container for programs", program.node))?;
        let number = self.programs.processes.len() + self.started_lines;
        self.started_lines += 1;
        let command = Command::Line(shell_state::save_on_exit(&program.command.shell_line()));
        self.lines.push(Process::start(&Program { command, ..program.clone() }, number, container)?);
        Ok(())
    }

    /// Returns how the last command line ended.
    fn last_outcome(&mut self, node: &str) -> Result<Option<CommandOutcome>, GuestError> {
        let Some(line) = self.lines.last_mut() else { return Ok(None) };
        let exit_code = line.poll_exit()?.map_or(0, ProgramExit::code);
        let (exceeded_memory, shell_state) = (line.was_out_of_memory(), shell_state::read_saved(node));
        Ok(Some(CommandOutcome { exit_code, exceeded_memory, shell_state }))
    }

    /// Lets time pass until `due` or, if the last line `is_awaited`, until that line has ended. Returns the time of an
    /// interrupt that came earlier, or `None`. In a replay, `interrupt` is the time of the next interrupt; otherwise
    /// the host sends interrupts.
    fn run_until(
        &mut self,
        is_awaited: bool,
        due: Option<StdDuration>,
        interrupt: Option<StdDuration>,
    ) -> Result<Option<Duration>, GuestError> {
        let from = self.begin.elapsed();
        let mut look = from + FIRST_INTERVAL;
        loop {
            let now = self.begin.elapsed();
            let next = self.programs.start_and_stop_due(now)?;
            let change = self.schedule.perform_due()?.map(|left| now + left);
            let line = self.lines.last_mut().filter(|_| is_awaited);
            let has_ended = line.map(Process::poll_exit).transpose()?.is_some_and(|status| status.is_some());
            if has_ended || due.is_some_and(|due| due <= now) {
                return Ok(None);
            }
            if look <= now {
                self.forward_output()?;
                // Where computing takes time, the same check may come some ns earlier in a replay than in the original session.
                let is_due = interrupt.is_some_and(|at| at <= now + FIRST_INTERVAL / 2);
                if self.channel.is_interrupted() || is_due {
                    return Ok(Some(in_ns(now)));
                }
                look = now + FIRST_INTERVAL.max((now - from) / INTERVAL_DIVISOR);
            }
            let wake = [Some(look), change, due].into_iter().flatten().fold(next, StdDuration::min);
            self.wait(is_awaited, wake)?;
        }
    }

    /// Waits until the time `until` or, if the last line `is_awaited`, until that line has ended.
    fn wait(&self, is_awaited: bool, until: StdDuration) -> Result<(), GuestError> {
        let line = self.lines.last().filter(|_| is_awaited);
        let mut wanted: Vec<PollFd<'_>> =
            line.map(|line| PollFd::new(line, PollFlags::IN)).into_iter().collect();
        let timeout = Timespec::try_from(until.saturating_sub(self.begin.elapsed())).ok();
        poll(&mut wanted, timeout.as_ref())?;
        Ok(())
    }

    /// Sends new output of all programs to the host.
    fn forward_output(&mut self) -> Result<(), GuestError> {
        let programs = self.programs.processes.iter_mut().flatten();
        for process in programs.chain(&mut self.lines) {
            for (output, message) in [GuestMessage::Stdout, GuestMessage::Stderr].into_iter().enumerate() {
                while let Some(text) = process.read_new_output(output)? {
                    self.channel.send(&message(text).to_octets())?;
                }
            }
        }
        Ok(())
    }

    /// Removes each line whose processes have all ended, together with its output.
    fn remove_finished_lines(&mut self) {
        self.lines.iter().filter(|line| line.has_no_processes()).for_each(Process::remove_output);
        self.lines.retain(|line| !line.has_no_processes());
    }

    /// Changes links of the network now. Returns the reason if the change is refused; `None` if it was made.
    fn change(&mut self, event: &EventSpec, now: Duration) -> Result<Option<String>, GuestError> {
        let mut network = self.network.clone();
        network.events.push(EventSpec { at: now, ..event.clone() });
        match netem::plan(&network) {
            Ok(plan) => {
                self.network = network;
                self.schedule.replace_changes(plan.changes_of_run(self.seed));
                self.schedule.perform_due()?;
                Ok(None)
            }
            Err(problem) => Ok(Some(problem.to_string())),
        }
    }
}

const fn in_ns(time: StdDuration) -> Duration {
    Duration::from_nanos(time.as_nanos() as u64)
}
