//! The commands and packets that are due during a run, in the order of time.

use std::collections::BTreeMap;

use hol_base::Duration;

use crate::quantity::event_time;
use crate::simulator::{Outcome, Simulator};
use crate::tcl::{Word, error_at};

/// The schedule of a run: its current time, and the commands and packets that are due later.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// The time of the run; `None` before it has started.
    pub now: Option<Duration>,
    /// The commands and packets that are due later in the run, by time and then by order of their scheduling.
    due: BTreeMap<(Duration, u64), Due>,
    /// When each scheduled command is due, by the number of the command.
    due_times: BTreeMap<u64, Duration>,
    commands: u64,
    bursts: u64,
    pub is_running: bool,
    pub is_over: bool,
}

/// What is due at a time of the run.
#[derive(Debug)]
enum Due {
    /// Commands of the script, as scheduled with `$ns at`.
    Commands(Word),
    /// The first packet of an application over FullTcp, which opens its connection. `start` is the number of the
    /// application's start, because a script may start it again.
    Opening { application: usize, start: u32 },
    /// The last packet of an application's burst. `start` is the number of the application's start, because a script
    /// may start it again.
    Burst { application: usize, start: u32 },
}

/// Maximum number of commands during a run; a script with more is rejected as endless.
const MAX_DUE: u64 = 200_000;
/// Maximum number of bursts of all random sources.
const MAX_BURSTS: u64 = 1_000_000;

impl Schedule {
    /// Schedules commands, and returns the number that identifies them.
    fn add_commands(&mut self, at: Duration, script: Word) -> u64 {
        self.commands += 1;
        self.due.insert((at, self.commands), Due::Commands(script));
        self.due_times.insert(self.commands, at);
        self.commands
    }

    /// Schedules the last packet of a burst. At its time it comes after the commands of the script, and after bursts
    /// scheduled before.
    pub fn add_burst(&mut self, at: Duration, application: usize, start: u32) {
        self.add_packet(at, Due::Burst { application, start });
    }

    /// Schedules the packet that opens the connection of an application.
    pub fn add_opening(&mut self, at: Duration, application: usize, start: u32) {
        self.add_packet(at, Due::Opening { application, start });
    }

    fn add_packet(&mut self, at: Duration, due: Due) {
        self.bursts += 1;
        self.due.insert((at, u64::MAX / 2 + self.bursts), due);
    }
}

impl Simulator<'_> {
    /// Returns the commands that are due next, and advances the time of the run to them; `None` at the end of the run.
    pub fn next_due(&mut self) -> Option<Word> {
        // The run ends with its last command, even if sources would send more: only commands have a time in
        // `due_times`.
        while !self.schedule.is_over && !self.is_refused() && !self.schedule.due_times.is_empty() {
            let ((at, number), due) = self.schedule.due.pop_first()?;
            self.schedule.due_times.remove(&number);
            self.schedule.now = Some(at);
            let script = match due {
                Due::Commands(script) => script,
                Due::Burst { application, .. } if self.schedule.bursts > MAX_BURSTS => {
                    let at = self.traffic.applications[application].at;
                    let problem = format!(
                        "the random sources of the script send more than {MAX_BURSTS} bursts; let them stop earlier"
                    );
                    let _ = self.unknown(at, problem);
                    return None;
                }
                Due::Opening { application, start } => {
                    self.open_by_burst(application, start);
                    continue;
                }
                Due::Burst { application, start } => {
                    self.next_burst(application, start);
                    continue;
                }
            };
            if self.schedule.commands <= MAX_DUE {
                return Some(script);
            }
            let problem =
                format!("the run has not ended after {MAX_DUE} commands; end it, as in $ns at 5.0 \"exit\"");
            let _ = self.unknown(script.at, problem);
            return None;
        }
        None
    }

    /// Executes `$ns at 0.5 "$ftp start"`, which schedules commands for a time of the run.
    pub(crate) fn schedule(&mut self, time: &Word, script: &Word) -> Outcome {
        let (at, now) = (event_time(time, self.is_emulab)?, self.schedule.now.unwrap_or_default());
        if at < now {
            return error_at(time.at, format!("{at} is in the past: the time of the run is {now}"));
        }
        Ok(self.schedule_at(at, script))
    }

    pub(crate) fn schedule_at(&mut self, at: Duration, script: &Word) -> String {
        self.schedule.add_commands(at, script.clone()).to_string()
    }

    /// Executes `exit`, which ends the script and, during the run, all traffic.
    pub(crate) fn exit(&mut self, at: usize) -> Outcome {
        let Some(now) = self.schedule.now else {
            return error_at(
                at,
                "the script ends before its run; if it needs arguments, write their values into the script",
            );
        };
        self.schedule.is_over = true;
        self.traffic.end = Some(now);
        Ok(String::new())
    }

    /// Returns whether the time of the run is above zero.
    pub(crate) fn has_begun(&self) -> bool {
        self.schedule.now.is_some_and(|now| now > Duration::ZERO)
    }

    /// Executes `$ns after 0.5 "$ftp start"`, which schedules commands relative to the current time of the run.
    pub(crate) fn schedule_after(&mut self, time: &Word, script: &Word) -> Outcome {
        let at = self.schedule.now.unwrap_or_default() + event_time(time, self.is_emulab)?;
        Ok(self.schedule_at(at, script))
    }

    /// Executes `$ns cancel $event`, which removes scheduled commands.
    pub(crate) fn cancel(&mut self, event: &Word) -> String {
        let number = event.text.parse::<u64>().unwrap_or_default();
        if let Some(at) = self.schedule.due_times.remove(&number) {
            self.schedule.due.remove(&(at, number));
        }
        String::new()
    }

    /// Executes `$ns run`, which starts the simulation.
    pub(crate) fn start_run(&mut self) -> String {
        self.schedule.is_running = true;
        // `Simulator run` resets all nodes, and their agents draw once more.
        let agents = self.traffic.agents.iter();
        for _ in 0..agents.filter(|agent| agent.node.is_some() && agent.random_draws() > 0).count() {
            self.randoms.generators[0].uniform();
        }
        String::new()
    }
}
