//! Performs a run in its world.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hol_base::Time;
use hol_measure::RecordKind;
use hol_scenario::RunError;

use crate::archive::Archive;
use crate::error::LabError;
use crate::failed_runs::FailedRun;
use crate::job::Job;
use crate::run_observer::RunObserver;
use crate::run_result::RunResult;
use crate::stopwatch::Stopwatch;

/// How a run ended.
pub(crate) enum RunOutcome {
    /// The run completed with this result.
    Done(Box<RunResult>),
    /// The run failed; other runs may succeed.
    Failed(FailedRun),
    /// The run was interrupted.
    Interrupted,
}

/// Performs `job` and writes its records to the `archive`. Calls `report_progress` regularly with the number of newly
/// settled messages; the run continues as long as `report_progress` returns true.
pub(crate) fn run(
    job: Job<'_>,
    archive: &Archive,
    report_progress: &mut dyn FnMut(u64) -> bool,
) -> Result<RunOutcome, LabError> {
    let (point, repetition) = (job.point, job.repetition);
    let world = point.world.open()?;
    let watch = Stopwatch::start();
    let (scenario, seed) = (point.scenario(repetition), point.seed_of(repetition));
    let flows = 1 + scenario.background_flows(seed).count() + scenario.onward.len();
    let records = archive.create_records_file(point, repetition, flows)?;
    let series = archive.create_series_file(point, repetition, flows)?;
    // Before the first delivery there is nothing that a disruption could interrupt.
    let later = scenario.network.disruptions().into_iter().filter(|one| !one.at.is_zero());
    let disruptions = later.map(|one| Time::ZERO + one.at).collect();
    let mut following = RunObserver::new(point.timeline, records, report_progress)
        .with_disruptions(disruptions)
        .with_classes(scenario.workload.record_kind(), scenario.workload.classes())
        .with_series(archive.interval(), series);
    // The figure of a page load shows a page of the first repetition.
    if repetition == 0 && scenario.workload.record_kind() == RecordKind::Page {
        following = following.with_waterfall();
    }
    match catch_unwind(AssertUnwindSafe(|| world.follow(&scenario, seed, &mut following))) {
        Err(_) => Err(LabError::AssertionFailed { point: point.to_string(), repetition, seed: seed.0 }),
        Ok(Err(RunError::Interrupted)) => following.into_problem().map_or(Ok(RunOutcome::Interrupted), Err),
        Ok(Err(RunError::Failed { problem, log })) => {
            let (key, name) = (job.key(), point.to_string());
            Ok(RunOutcome::Failed(FailedRun { key, name, failed: problem, log }))
        }
        Ok(Err(RunError::Refused(problem))) => Err(LabError::Scenario { point: point.to_string(), problem }),
        Ok(run) => {
            let (run, seconds) = (run?, watch.seconds());
            archive.unpack(job.key(), &run.files)?;
            let said = following.finish(scenario.workload.record_kind(), run.ended)?;
            let result = RunResult {
                trace_start: point.network.trace_start_of_run(seed),
                ..RunResult::of(job.key(), run, said, seconds)
            };
            Ok(RunOutcome::Done(Box::new(result)))
        }
    }
}
