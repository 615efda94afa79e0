//! The programs of a run while it lasts: what has been started, and what is due next.

use std::collections::BTreeMap;
use std::time::Duration as StdDuration;

use hol_base::Duration;
use hol_scenario::{Program, Scenario};

use super::place::Place;
use super::process::Process;
use super::swap::Swap;
use crate::guest::Trouble;

/// The programs of a run; the services are ready.
#[derive(Debug)]
pub(in crate::guest) struct Programs<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) places: BTreeMap<&'s str, Place>,
    /// By their places in the scenario; `None`: not started.
    pub(super) processes: Vec<Option<Process>>,
    /// Those whose end was awaited in vain.
    pub(super) overdue: Vec<usize>,
    pub(super) _swap: Swap,
}

impl<'s> Programs<'s> {
    pub(super) fn start(&mut self, index: usize) -> Result<(), Trouble> {
        let program = &self.scenario.programs[index];
        // The console tells who was running if the machine has to be ended.
        println!("hol: {} is started", named(program));
        let place = &self.places[program.node.as_str()];
        let process = Process::start(program, index, place);
        self.processes[index] = Some(process.map_err(|problem| format!("{}: {problem}", named(program)))?);
        Ok(())
    }

    /// Those whose end is awaited.
    pub(super) fn awaited(&self) -> impl Iterator<Item = usize> + use<'s> {
        let programs = self.scenario.programs.iter().enumerate();
        programs.filter(|(_, program)| program.is_awaited()).map(|(index, _)| index)
    }

    pub(super) fn has_ended(&self, index: usize) -> bool {
        self.processes[index].as_ref().is_some_and(|process| process.status().is_some())
    }

    /// Starts and stops what is due `now`; returns when the next is.
    pub(super) fn attend(&mut self, now: StdDuration) -> Result<StdDuration, Trouble> {
        let mut next = StdDuration::MAX;
        for index in 0..self.scenario.programs.len() {
            let Program { start, stop: due, .. } = &self.scenario.programs[index];
            let (start, due) = (to_std(*start), due.map(to_std));
            if let Some(process) = &mut self.processes[index] {
                process.look()?;
            }
            match &mut self.processes[index] {
                None if start <= now => self.start(index)?,
                None => next = next.min(start),
                Some(process) if process.status().is_none() && !process.was_asked => match due {
                    Some(due) if due <= now => process.ask_to_end()?,
                    Some(due) => next = next.min(due),
                    None => {}
                },
                Some(_) => {}
            }
        }
        Ok(next)
    }
}

/// What a message calls a program.
pub(super) fn named(program: &Program) -> String {
    format!("{:?} on {}", program.command.line(), program.node)
}

pub(super) const fn to_std(duration: Duration) -> StdDuration {
    StdDuration::from_nanos(duration.as_nanos())
}
