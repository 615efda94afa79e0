//! Fills a result directory: as far as it is, on all cores, until it is done or interrupted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hol_lab::{Finished, Job, Manifest, Plan, Results, Stopwatch, Store, execute};

use crate::failure::Failure;
use crate::points::Points;
use crate::progress::{Progress, ProgressOutput};
use crate::terminal::{grouped, note};

/// After runs of so many seconds a reader is told that the work goes on without any: what they left takes its time, too.
const PATIENCE: f64 = 5.0;

/// Set by Ctrl-C and by SIGTERM.
static STOP: AtomicBool = AtomicBool::new(false);

/// How many runs go on at the same time.
pub fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Ends the work and the runs that have begun; the second time at once: finished runs are on the disk.
pub fn stop_on_interrupt() -> Result<&'static AtomicBool, Failure> {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
        note!("\nstopping; runs that have begun are dropped");
    };
    match ctrlc::set_handler(handler) {
        // A comparison that grows asks again at each step.
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(&STOP),
        Err(problem) => Err(Failure::failed(problem)),
    }
}

/// How a directory is filled.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions {
    /// Number of runs in parallel.
    pub jobs: Option<usize>,
    /// Who is told how far it is.
    pub telling: ProgressOutput,
    /// Whether it may have been asked something else before.
    pub extends: bool,
}

/// Does what is not done yet of `manifest` in `dir`, and writes the tables. Runs that failed are missing in them:
/// [`complete`] says so.
pub fn fill(dir: &Path, manifest: Manifest, filling: RunOptions) -> Result<Results, Failure> {
    let RunOptions { jobs, telling, extends } = filling;
    let stop = stop_on_interrupt()?;
    let open = if extends { Store::extend } else { Store::open };
    let (mut store, mut finished) = open(dir, manifest)?;
    let quiet = telling != ProgressOutput::People;
    let plan = Plan::of_manifest(store.manifest());
    let known = finished.runs().count();
    if known > 0 && !quiet {
        note!("going on in {}: {} runs are there already", dir.display(), grouped(known as u64));
    }
    let watch = Stopwatch::start();
    carry_out(&plan, &mut store, &mut finished, jobs, telling)?;
    if !quiet && watch.seconds() > PATIENCE {
        note!("the runs are over; reading them for tables, figures and report");
    }
    // A part of the runs is no table: it may have the second repetition of a point, and not the first.
    let results = match store.manifest().shard {
        Some(_) => Results::new(store.manifest().clone(), &finished),
        None => store.write_tables(&finished)?,
    };
    if results.complete() || !stop.load(Ordering::Relaxed) {
        return Ok(results);
    }
    if telling == ProgressOutput::Programs {
        note!("{}", serde_json::json!({ "interrupted": true }));
    }
    let missing = plan.wanted(&finished).len();
    Err(Failure::Failed(format!(
        "interrupted with {} runs done and at least {} to do; run the same command again to go on, \
         `hol report {}` draws what is there",
        grouped(finished.runs().count() as u64),
        grouped(missing as u64),
        dir.display()
    )))
}

/// Does what `plan` wants beyond `finished`, and keeps each run in `store` as it ends.
pub fn carry_out(
    plan: &Plan,
    store: &mut Store,
    finished: &mut Finished,
    jobs: Option<usize>,
    telling: ProgressOutput,
) -> Result<(), Failure> {
    let mut progress = Progress::new(telling).after(kept(plan, finished));
    // Where nothing is left to do, this is all that is said.
    progress.show(missing(plan, finished));
    let mut points = (telling == ProgressOutput::Programs).then(Points::default);
    let archive = store.archive();
    let result = execute(plan, finished, threads(jobs), &STOP, &archive, |ended, now, finished| {
        progress.show(now);
        if let Some(ended) = ended {
            store.append(ended)?;
        }
        points.as_mut().map_or(Ok(()), |points| points.show(ended, store, finished))
    });
    progress.finish();
    warn_of_engine(finished);
    Ok(result?)
}

/// What runs of `plan` in `finished` come to.
fn kept(plan: &Plan, finished: &Finished) -> hol_lab::Progress {
    let mut seen = BTreeSet::new();
    let points = plan.points().iter().filter(|point| seen.insert(point.id));
    let jobs = points.flat_map(|point| {
        finished.of(point.id).map(move |run| Job { point, repetition: run.key.repetition })
    });
    jobs.fold(hol_lab::Progress::default(), |sum, job| hol_lab::Progress {
        runs: sum.runs + 1,
        messages: sum.messages.saturating_add(job.messages()),
        work: sum.work.saturating_add(job.work()),
        ..sum
    })
}

/// What is wanted beyond `finished`, of which nothing is done.
fn missing(plan: &Plan, finished: &Finished) -> hol_lab::Progress {
    let jobs = plan.wanted(finished);
    jobs.iter().fold(hol_lab::Progress::default(), |sum, job| hol_lab::Progress {
        runs_wanted: sum.runs_wanted + 1,
        messages_wanted: sum.messages_wanted.saturating_add(job.messages()),
        work_wanted: sum.work_wanted.saturating_add(job.work()),
        ..sum
    })
}

/// Says where what runs were made on was not at its best, a line for each way in which.
pub fn warn_of_engine(finished: &Finished) {
    let facts = finished.runs().filter_map(|run| run.facts.as_ref());
    let warnings = facts.filter_map(|facts| facts.caution.as_ref());
    warnings.collect::<BTreeSet<_>>().iter().for_each(|warning| note!("warning: {warning}"));
}

/// Fails if runs of the directory failed: how many, where to look, what to do.
pub fn complete(results: &Results, dir: &Path) -> Result<(), Failure> {
    let Some(first) = results.failed.first() else { return Ok(()) };
    Err(Failure::Failed(format!(
        "{} of {} runs failed and are missing above; the first is {first}\n{} has a log of each; run the same \
         command again to try them again",
        grouped(results.failed.len() as u64),
        grouped(results.wanted),
        dir.join("failed").display()
    )))
}
