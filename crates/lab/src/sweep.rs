//! Does a plan: all cores, the longest runs first, until nothing is wanted or somebody stops it.

use std::sync::atomic::{AtomicBool, Ordering};

use hol_measure::Record;

use crate::error::LabError;
use crate::plan::{Finished, Job, Plan};
use crate::pool;
use crate::run::{self, RunResult};

/// How far a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Runs that are done.
    pub runs: u64,
    /// Runs that are known to be needed.
    pub runs_wanted: u64,
    /// Messages of the runs that are done.
    pub messages: u64,
    /// Messages of all runs that are known to be needed.
    pub messages_wanted: u64,
}

/// Does what `plan` wants beyond `finished` on `threads` threads; `stop` ends it after the runs that have begun.
///
/// `keep` gets the records of each run where it ran, on any thread. `done` gets each result here, in the order
/// in which they finish; results do not depend on that order.
pub fn execute(
    plan: &Plan,
    finished: &mut Finished,
    threads: usize,
    stop: &AtomicBool,
    keep: impl Fn(&RunResult, &[Record]) -> Result<(), LabError> + Sync,
    mut done: impl FnMut(&RunResult, Progress) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let mut progress = Progress::default();
    loop {
        let jobs = plan.wanted(finished);
        if jobs.is_empty() || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        progress.runs_wanted += jobs.len() as u64;
        progress.messages_wanted += jobs.iter().map(Job::messages).sum::<u64>();
        let work = |job: &Job<'_>| {
            let (result, records) = run::run(*job)?;
            keep(&result, &records)?;
            Ok((result, job.messages()))
        };
        let take = |ended: Result<(RunResult, u64), LabError>| -> Result<(), LabError> {
            let (result, messages) = ended?;
            progress.runs += 1;
            progress.messages += messages;
            done(&result, progress)?;
            finished.insert(result);
            Ok(())
        };
        pool::for_each(&jobs, threads, stop, work, take)?;
    }
}
