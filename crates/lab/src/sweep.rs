//! Does a plan: all cores, the longest runs first, until nothing is wanted or somebody stops it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use hol_measure::Record;

use crate::error::LabError;
use crate::failed::FailedRun;
use crate::finished::Finished;
use crate::job::Job;
use crate::plan::{Plan, by_world};
use crate::pool;
use crate::run::{self, Outcome};
use crate::run_result::RunResult;

/// If so many runs fail and none before them was done, so will the others.
const HOPELESS: u64 = 20;

/// What became of a run.
pub type Ended<'r> = Result<&'r RunResult, &'r FailedRun>;

/// How far a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Runs that are done.
    pub runs: u64,
    /// Runs that are known to be needed.
    pub runs_wanted: u64,
    /// Runs that failed; they count as done.
    pub failed: u64,
    /// About the processor time of the runs that are done, in µs.
    pub work: u64,
    /// The same of all runs that are known to be needed.
    pub work_wanted: u64,
}

/// Does what `plan` wants beyond `finished` on `threads` threads; `stop` ends it after the runs that have begun.
///
/// `keep` gets the records of each run, by flow, where it ran, on any thread. `done` gets each result here, in the order
/// in which they finish; results do not depend on that order. A run that fails is not tried again here.
pub fn execute(
    plan: &Plan,
    finished: &mut Finished,
    threads: usize,
    stop: &AtomicBool,
    keep: impl Fn(&RunResult, &[Vec<Record>]) -> Result<(), LabError> + Sync,
    mut done: impl FnMut(Ended<'_>, Progress) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let mut progress = Progress::default();
    let mut given_up = BTreeSet::new();
    loop {
        let mut jobs = plan.wanted(finished);
        jobs.retain(|job| !given_up.contains(&job.key()));
        if jobs.is_empty() || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        for (world, count) in by_world(&jobs) {
            world.make_room(count.min(threads))?;
        }
        progress.runs_wanted += jobs.len() as u64;
        progress.work_wanted = jobs.iter().map(Job::work).fold(progress.work_wanted, u64::saturating_add);
        let work = |job: &Job<'_>| match run::run(*job) {
            Ok(Outcome::Done(result, records)) => keep(&result, &records).map(|()| (job.work(), Ok(*result))),
            Ok(Outcome::Failed(run)) => Ok((job.work(), Err(run))),
            Err(problem) => Err(problem),
        };
        let take = |ended: Result<(u64, Result<RunResult, FailedRun>), LabError>| -> Result<(), LabError> {
            let (work, ended) = ended?;
            progress.runs += 1;
            progress.work = progress.work.saturating_add(work);
            progress.failed += u64::from(ended.is_err());
            done(ended.as_ref(), progress)?;
            match ended {
                Ok(result) => finished.insert(result),
                Err(run) if progress.runs == HOPELESS && progress.failed == HOPELESS => {
                    return Err(LabError::Hopeless(HOPELESS, run.to_string()));
                }
                Err(run) => {
                    given_up.insert(run.key);
                    finished.fail(run);
                }
            }
            Ok(())
        };
        pool::for_each(&jobs, threads, stop, work, take)?;
    }
}
