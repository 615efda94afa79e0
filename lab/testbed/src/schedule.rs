//! The commands and packets that are due during a run, in the order of time.

use std::collections::BTreeMap;

use hol_base::Duration;

use crate::quantity::event_time;
use crate::simulator::{Outcome, Simulator};
use crate::tcl::{Word, error_at};

/// The time of the run, and the commands and packets that are due.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// The time of the run; `None` before it has started.
    pub now: Option<Duration>,
    /// The commands and packets that are due during the run, in order.
    due: BTreeMap<(Duration, u64), Due>,
    /// When each of the commands is due, by its number.
    due_times: BTreeMap<u64, Duration>,
    commands: u64,
    bursts: u64,
    pub is_running: bool,
    pub is_over: bool,
}

/// An item that is due at a time of the run.
#[derive(Debug)]
enum Due {
    /// Commands of the script.
    Commands(Word),
    /// The first packet of an application over FullTcp after its start number `start`: a script may start it again.
    Opening { application: usize, start: u32 },
    /// The last packet of a burst of an application after its start number `start`.
    Burst { application: usize, start: u32 },
}

/// Maximum number of commands during a run; a script with more is considered endless.
const MAX_DUE: u64 = 200_000;
/// Maximum number of bursts of all random sources.
const MAX_BURSTS: u64 = 1_000_000;

impl Schedule {
    /// Adds commands, and returns the number that identifies them.
    fn add_commands(&mut self, at: Duration, script: Word) -> u64 {
        self.commands += 1;
        self.due.insert((at, self.commands), Due::Commands(script));
        self.due_times.insert(self.commands, at);
        self.commands
    }

    /// Adds the last packet of a burst. It is due after the commands of the script at the same time, and in the order
    /// of the bursts.
    pub fn add_burst(&mut self, at: Duration, application: usize, start: u32) {
        self.add_packet(at, Due::Burst { application, start });
    }

    /// Adds the first packet that opens a connection.
    pub fn add_opening(&mut self, at: Duration, application: usize, start: u32) {
        self.add_packet(at, Due::Opening { application, start });
    }

    fn add_packet(&mut self, at: Duration, due: Due) {
        self.bursts += 1;
        self.due.insert((at, u64::MAX / 2 + self.bursts), due);
    }
}

impl Simulator<'_> {
    /// Returns the next commands of the run, and advances its time to them; `None` at the end of the run.
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

    /// Executes `$ns at 0.5 "$ftp start"`: schedules the commands for that time of the run.
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

    /// Executes `exit`: the script ends, and during the run all traffic ends with it.
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

    /// Returns whether the time of the run is later than zero.
    pub(crate) fn has_begun(&self) -> bool {
        self.schedule.now.is_some_and(|now| now > Duration::ZERO)
    }

    /// Executes `$ns after 0.5 "$ftp start"`.
    pub(crate) fn schedule_after(&mut self, time: &Word, script: &Word) -> Outcome {
        let at = self.schedule.now.unwrap_or_default() + event_time(time, self.is_emulab)?;
        Ok(self.schedule_at(at, script))
    }

    /// Executes `$ns cancel $event`.
    pub(crate) fn cancel(&mut self, event: &Word) -> String {
        let number = event.text.parse::<u64>().unwrap_or_default();
        if let Some(at) = self.schedule.due_times.remove(&number) {
            self.schedule.due.remove(&(at, number));
        }
        String::new()
    }

    /// Executes `$ns run`: from then on the simulation runs.
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
