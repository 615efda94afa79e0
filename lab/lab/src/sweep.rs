//! Runs a plan on all cores, the longest runs first, until it is complete or interrupted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::archive::Archive;
use crate::error::LabError;
use crate::failed_runs::FailedRun;
use crate::job::Job;
use crate::plan::{Plan, count_by_world};
use crate::pool;
use crate::run::{self, RunOutcome};
use crate::run_result::RunResult;
use crate::run_results::RunResults;
use crate::stopwatch::Stopwatch;

/// The number of failed runs after which the sweep ends, if no run has been completed by then.
const MAX_FAILURES: u64 = 20;

/// Interval of progress reports while a run continues, in s.
const REPORT_INTERVAL: f64 = 2.0;

/// The result of a run, or its failure.
pub type EndedRun<'r> = Result<&'r RunResult, &'r FailedRun>;

/// The progress of the runs of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Number of runs that have ended.
    pub runs: u64,
    /// Number of runs that are needed, as far as is known.
    pub runs_wanted: u64,
    /// Number of runs that failed; `runs` includes them.
    pub failed: u64,
    /// Number of settled messages, including messages of runs in progress.
    pub messages: u64,
    /// Number of messages in all runs that are needed, as far as is known.
    pub messages_wanted: u64,
    /// Approximate processor time of the completed work, in µs.
    pub work: u64,
    /// Approximate processor time of all runs that are needed, as far as is known, in µs.
    pub work_wanted: u64,
}

/// A report of a thread about the run that it performs.
enum RunReport {
    /// The run has progressed by this step.
    Progressed(Step),
    /// The run has ended; contains the remaining step and the result.
    Ended(Step, Result<Box<RunResult>, FailedRun>),
    /// The run was interrupted.
    Interrupted,
}

/// A part of a run's messages and processor time.
#[derive(Clone, Copy)]
struct Step {
    messages: u64,
    work: u64,
}

/// Performs the runs of `plan` that are not in `finished`, on `threads` threads.
///
/// If `stop` becomes true, ends, and interrupts runs that can be interrupted. The records of each run go to the
/// `archive`. `done` is called on the calling thread with each result, in the order in which runs end, and without
/// a result when a run has progressed; its last argument contains the runs that ended before. Results do not
/// depend on the order in which runs end. A failed run is not repeated.
pub fn execute(
    plan: &Plan,
    finished: &mut RunResults,
    threads: usize,
    stop: &AtomicBool,
    archive: &Archive,
    mut done: impl FnMut(Option<EndedRun<'_>>, Progress, &RunResults) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let mut progress = Progress::default();
    let mut given_up = BTreeSet::new();
    loop {
        let mut jobs = plan.next_runs(finished);
        jobs.retain(|job| !given_up.contains(&job.key()));
        if jobs.is_empty() || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        for (world, count) in count_by_world(&jobs) {
            world.make_room(count.min(threads))?;
        }
        progress.add_wanted(&jobs);
        let work = |job: &Job<'_>, report: &dyn Fn(Result<RunReport, LabError>) -> bool| {
            run_and_report(*job, archive, stop, report)
        };
        let take = |news: Result<RunReport, LabError>| -> Result<(), LabError> {
            let ended = match news? {
                RunReport::Interrupted => return Ok(()),
                RunReport::Progressed(step) => {
                    progress.add(step);
                    return done(None, progress, finished);
                }
                RunReport::Ended(step, ended) => {
                    progress.add(step);
                    ended
                }
            };
            progress.runs += 1;
            progress.failed += u64::from(ended.is_err());
            done(Some(ended.as_deref()), progress, finished)?;
            match ended {
                Ok(result) => finished.insert(*result),
                Err(run) if progress.runs == MAX_FAILURES && progress.failed == MAX_FAILURES => {
                    return Err(LabError::AllFailed(MAX_FAILURES, run.to_string()));
                }
                Err(run) => {
                    given_up.insert(run.key);
                    finished.insert_failed(run);
                }
            }
            Ok(())
        };
        pool::for_each(&jobs, threads, stop, work, take)?;
    }
}

/// Performs a run. Reports its progress after every few ten thousand messages or, while no message is settled, every
/// few seconds.
fn run_and_report(
    job: Job<'_>,
    archive: &Archive,
    stop: &AtomicBool,
    report: &dyn Fn(Result<RunReport, LabError>) -> bool,
) -> Result<RunReport, LabError> {
    const MESSAGES_PER_REPORT: u64 = 1 << 16;
    let whole = Step { messages: job.message_count(), work: job.work() };
    let (mut remaining, mut unreported) = (whole, 0);
    let (watch, mut last_report) = (Stopwatch::start(), 0.0);
    let outcome = run::run(job, archive, &mut |messages| {
        unreported += messages;
        let mut goes_on = true;
        let now = watch.seconds();
        if unreported >= MESSAGES_PER_REPORT || now >= last_report + REPORT_INTERVAL {
            last_report = now;
            let step = whole.part(std::mem::take(&mut unreported));
            remaining = remaining.after(step);
            goes_on = report(Ok(RunReport::Progressed(step)));
        }
        goes_on && !stop.load(Ordering::Relaxed)
    })?;
    Ok(match outcome {
        RunOutcome::Done(result) => RunReport::Ended(remaining, Ok(result)),
        RunOutcome::Failed(run) => RunReport::Ended(remaining, Err(run)),
        RunOutcome::Interrupted => RunReport::Interrupted,
    })
}

impl Progress {
    fn add_wanted(&mut self, jobs: &[Job<'_>]) {
        self.runs_wanted += jobs.len() as u64;
        for job in jobs {
            self.messages_wanted = self.messages_wanted.saturating_add(job.message_count());
            self.work_wanted = self.work_wanted.saturating_add(job.work());
        }
    }

    fn add(&mut self, step: Step) {
        self.messages = self.messages.saturating_add(step.messages);
        self.work = self.work.saturating_add(step.work);
    }
}

impl Step {
    /// Returns the part of this step that consists of `messages` messages and the corresponding share of the
    /// processor time.
    fn part(self, messages: u64) -> Self {
        Self { messages, work: (self.work as f64 * messages as f64 / self.messages as f64) as u64 }
    }

    /// Returns what remains of this step without `part`.
    fn after(self, part: Self) -> Self {
        let Self { messages, work } = part;
        Self { messages: self.messages.saturating_sub(messages), work: self.work.saturating_sub(work) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::source::Source;

    fn plan(messages: u64) -> Plan {
        let text = format!("transports = ['tcp']\nmessages = {messages}\nrepetitions = 1");
        Plan::new([&Experiment::parse("test", &Source::new("test", &text)).unwrap()])
    }

    #[test]
    fn a_long_run_reports_progress_up_to_its_total() {
        let (plan, mut finished) = (plan(200_000), RunResults::default());
        let mut seen = Vec::new();
        let stop = AtomicBool::new(false);
        execute(&plan, &mut finished, 1, &stop, &Archive::default(), |ended, now, _| {
            seen.push((ended.is_some(), now.messages, now.work));
            Ok(())
        })
        .unwrap();
        let work = plan.next_runs(&RunResults::default())[0].work();
        // Three steps of 65,536 messages and the end; a slow machine reports more often.
        assert!(seen.len() >= 4, "{seen:?}");
        assert_eq!(seen.last(), Some(&(true, 200_000, work)));
        assert!(seen.is_sorted(), "{seen:?}");
    }

    #[test]
    fn an_interruption_ends_a_run_that_has_begun() {
        let (plan, mut finished) = (plan(1_000_000_000), RunResults::default());
        let stop = AtomicBool::new(false);
        execute(&plan, &mut finished, 1, &stop, &Archive::default(), |ended, _, _| {
            assert!(ended.is_none());
            stop.store(true, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        assert_eq!((finished.runs().count(), plan.next_runs(&finished).len()), (0, 1));
    }
}
