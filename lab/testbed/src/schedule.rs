//! What is due during a run, in the order of time.

use hol_base::Duration;

use crate::quantity::seconds;
use crate::simulator::{Outcome, Simulator};
use crate::tcl::{Word, error_at};

/// What is due at a time of the run.
#[derive(Debug)]
pub(crate) enum Due {
    /// Commands of the script.
    Commands(Word),
    /// The last packet of a burst of an application, in its start of this number.
    Burst { application: usize, start: u32 },
}

/// Maximum number of commands during a run; a script with more does not end.
const MOST_DUE: u64 = 200_000;
/// Maximum number of bursts of all random sources.
const MOST_BURSTS: u64 = 1_000_000;

impl Simulator<'_> {
    /// Returns the next commands of the run, and advances its time to them; `None` at the end of the run.
    pub fn next_due(&mut self) -> Option<Word> {
        // Sources alone never end a run: only commands have a time in `due_times`.
        while !self.is_over && !self.is_hopeless() && !self.due_times.is_empty() {
            let ((at, number), due) = self.due.pop_first()?;
            self.due_times.remove(&number);
            self.now = Some(at);
            let script = match due {
                Due::Commands(script) => script,
                Due::Burst { application, .. } if self.scheduled_bursts > MOST_BURSTS => {
                    let at = self.traffic.applications[application].at;
                    let problem = format!(
                        "the random sources of the script send more than {MOST_BURSTS} bursts; let them stop earlier"
                    );
                    let _ = self.unknown(at, problem);
                    return None;
                }
                Due::Burst { application, start } => {
                    self.next_burst(application, start);
                    continue;
                }
            };
            if self.scheduled <= MOST_DUE {
                return Some(script);
            }
            let problem =
                format!("the run has not ended after {MOST_DUE} commands; end it, as in $ns at 5.0 \"exit\"");
            let _ = self.unknown(script.at, problem);
            return None;
        }
        None
    }

    /// `$ns at 0.5 "$ftp start"`: whatever the words say is run at that time of the run.
    pub(crate) fn schedule(&mut self, time: &Word, script: &Word) -> Outcome {
        let (at, now) = (seconds(time)?, self.now.unwrap_or_default());
        if at < now {
            return error_at(time.at, format!("{at} is in the past: the time of the run is {now}"));
        }
        Ok(self.schedule_at(at, script))
    }

    pub(crate) fn schedule_at(&mut self, at: Duration, script: &Word) -> String {
        self.scheduled += 1;
        self.due.insert((at, self.scheduled), Due::Commands(script.clone()));
        self.due_times.insert(self.scheduled, at);
        self.scheduled.to_string()
    }

    /// The script ends itself: during the run, all traffic ends with it.
    pub(crate) fn exit(&mut self, at: usize) -> Outcome {
        let Some(now) = self.now else {
            return error_at(
                at,
                "the script ends before its run; if it needs arguments, write their values into the script",
            );
        };
        self.is_over = true;
        self.traffic.end = Some(now);
        Ok(String::new())
    }

    /// Returns whether the time of the run is not zero any more.
    pub(crate) fn has_begun(&self) -> bool {
        self.now.is_some_and(|now| now > Duration::ZERO)
    }

    /// Executes `$ns after 0.5 "$ftp start"`.
    pub(crate) fn schedule_after(&mut self, time: &Word, script: &Word) -> Outcome {
        let at = self.now.unwrap_or_default() + seconds(time)?;
        Ok(self.schedule_at(at, script))
    }

    /// Executes `$ns cancel $event`.
    pub(crate) fn cancel(&mut self, event: &Word) -> String {
        let number = event.text.parse::<u64>().unwrap_or_default();
        if let Some(at) = self.due_times.remove(&number) {
            self.due.remove(&(at, number));
        }
        String::new()
    }

    /// Executes `$ns run`.
    pub(crate) fn start_run(&mut self) -> String {
        self.is_running = true;
        // `Simulator run` resets all nodes, and their agents draw once more.
        let agents = self.traffic.agents.iter();
        for _ in 0..agents.filter(|agent| agent.node.is_some() && agent.draws() > 0).count() {
            self.randoms.generators[0].uniform();
        }
        String::new()
    }
}
