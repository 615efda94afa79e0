//! The state of a run's programs: which have been started, and what is due next.

use std::collections::BTreeMap;
use std::time::Duration as StdDuration;

use hol_base::Duration;
use hol_scenario::{Program, Scenario};

use super::container::Container;
use super::process::Process;
use super::protocol_swap::ProtocolSwap;
use crate::guest::GuestError;

/// The programs of a run, whose services are ready.
#[derive(Debug)]
pub(in crate::guest) struct Programs<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) containers: BTreeMap<&'s str, Container>,
    /// Processes by the index of their program in the scenario; `None` for a program that has not started.
    pub(super) processes: Vec<Option<Process>>,
    /// Indices of the programs that had not ended at the time limit of the run.
    pub(super) overdue: Vec<usize>,
    pub(super) _swap: ProtocolSwap,
}

impl<'s> Programs<'s> {
    /// Starts the program with this index, and reports the start on the console.
    pub(super) fn start(&mut self, index: usize) -> Result<(), GuestError> {
        let program = &self.scenario.programs[index];
        // The console shows which programs were running if the host has to end the machine.
        println!("hol: {} is started", describe(program));
        let container = &self.containers[program.node.as_str()];
        let process = Process::start(program, index, container);
        self.processes[index] = Some(process.map_err(|problem| format!("{}: {problem}", describe(program)))?);
        Ok(())
    }

    /// Returns the indices of the programs that have to end before the run ends.
    pub(super) fn awaited_programs(&self) -> impl Iterator<Item = usize> + use<'s> {
        let programs = self.scenario.programs.iter().enumerate();
        programs.filter(|(_, program)| program.is_awaited()).map(|(index, _)| index)
    }

    /// Returns whether a program has ended.
    pub(super) fn has_ended(&self, index: usize) -> bool {
        self.processes[index].as_ref().is_some_and(|process| process.status().is_some())
    }

    /// Starts and stops the programs that are due `now`; returns when the next one is due.
    pub(super) fn start_and_stop_due(&mut self, now: StdDuration) -> Result<StdDuration, GuestError> {
        let mut next = StdDuration::MAX;
        for index in 0..self.scenario.programs.len() {
            let Program { start, stop: due, .. } = &self.scenario.programs[index];
            let (start, due) = (to_std(*start), due.map(to_std));
            if let Some(process) = &mut self.processes[index] {
                process.poll_exit()?;
            }
            match &mut self.processes[index] {
                None if start <= now => self.start(index)?,
                None => next = next.min(start),
                Some(process) if process.status().is_none() && !process.was_terminated => match due {
                    Some(due) if due <= now => process.terminate()?,
                    Some(due) => next = next.min(due),
                    None => {}
                },
                Some(_) => {}
            }
        }
        Ok(next)
    }
}

/// Returns a description of a program for messages.
pub(super) fn describe(program: &Program) -> String {
    format!("{:?} on {}", program.command.shell_line(), program.node)
}

/// Converts hol's duration to that of the standard library.
pub(super) const fn to_std(duration: Duration) -> StdDuration {
    StdDuration::from_nanos(duration.as_nanos())
}
