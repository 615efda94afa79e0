//! Does a run in its world.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hol_measure::Record;
use hol_scenario::RunError;

use crate::error::LabError;
use crate::failed::FailedRun;
use crate::job::Job;
use crate::run_result::RunResult;
use crate::stopwatch::Stopwatch;

/// What became of a run.
pub(crate) enum Outcome {
    /// The result, and the records by flow: first the one that is measured, then the background.
    Done(Box<RunResult>, Vec<Vec<Record>>),
    /// It failed; others may not.
    Failed(FailedRun),
}

/// Runs `job`.
pub(crate) fn run(job: Job<'_>) -> Result<Outcome, LabError> {
    let (point, repetition) = (job.point, job.repetition);
    let world = point.world.open()?;
    let watch = Stopwatch::start();
    let (scenario, seed) = (point.scenario(repetition), point.seed_of(repetition));
    let run = match catch_unwind(AssertUnwindSafe(|| world.run(&scenario, seed))) {
        Err(_) => return Err(LabError::Broken { point: point.to_string(), repetition, seed: seed.0 }),
        Ok(Err(RunError::Failed { problem, log })) => {
            let (key, name) = (job.key(), point.to_string());
            return Ok(Outcome::Failed(FailedRun { key, name, failed: problem, log }));
        }
        Ok(Err(RunError::Refused(problem))) => {
            return Err(LabError::Scenario { point: point.to_string(), problem });
        }
        Ok(run) => run?,
    };
    let result = RunResult::of(job.key(), &run, scenario.workload.record_kind(), watch.seconds());
    let background = run.background.into_iter().map(|flow| flow.records);
    Ok(Outcome::Done(Box::new(result), [run.records].into_iter().chain(background).collect()))
}
