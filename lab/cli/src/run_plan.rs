//! Performs the missing runs of a result directory, on all cores, until all are done or the user interrupts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hol_lab::{Job, Manifest, Plan, Results, RunResults, Stopwatch, Store, execute};

use crate::failure::Failure;
use crate::point_reporter::PointReporter;
use crate::progress::{Progress, ProgressOutput};
use crate::terminal::{group_digits, note};

/// Seconds of running after which a note announces that tables and figures are being created.
const NOTE_AFTER_S: f64 = 5.0;

/// Whether the plan is to stop; set by Ctrl-C and by SIGTERM.
static STOP: AtomicBool = AtomicBool::new(false);

/// Returns the number of runs in parallel.
pub fn thread_count(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Makes the first Ctrl-C stop the plan and the current runs, and the second Ctrl-C end this process at once. Finished
/// runs are already on the disk.
pub fn stop_on_interrupt() -> Result<&'static AtomicBool, Failure> {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
        note!("\nstopping; unfinished runs are discarded (press Ctrl-C again to exit at once)");
    };
    match ctrlc::set_handler(handler) {
        // A comparison that adds repetitions installs the handler again at each step.
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(&STOP),
        Err(problem) => Err(Failure::failed(problem)),
    }
}

/// Options for performing the runs of an experiment, with their results in a directory.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions {
    /// Number of runs in parallel.
    pub jobs: Option<usize>,
    /// Form of progress output.
    pub progress_output: ProgressOutput,
    /// Whether the directory may already have results of a different experiment.
    pub extends: bool,
}

/// Performs the missing runs of `manifest` in `dir`, and writes the tables. Failed runs are missing from the
/// tables; [`check_no_failures`] returns an error about them.
pub fn perform_missing_runs(dir: &Path, manifest: Manifest, options: RunOptions) -> Result<Results, Failure> {
    let RunOptions { jobs, progress_output, extends } = options;
    let stop = stop_on_interrupt()?;
    let open = if extends { Store::extend } else { Store::open };
    let (mut store, mut finished) = open(dir, manifest)?;
    let quiet = progress_output != ProgressOutput::Text;
    let plan = Plan::of_manifest(store.manifest());
    let known = finished.runs().count();
    if known > 0 && !quiet {
        note!("continuing in {}: {} runs are already done", dir.display(), group_digits(known as u64));
    }
    let watch = Stopwatch::start();
    execute_plan(&plan, &mut store, &mut finished, jobs, progress_output)?;
    if !quiet && watch.seconds() > NOTE_AFTER_S {
        note!("all runs are done; creating tables, figures and report");
    }
    // A part of the runs is not enough for tables: it may contain the second repetition of a point without the first.
    let results = match store.manifest().shard {
        Some(_) => Results::new(store.manifest().clone(), &finished),
        None => store.write_tables(&finished)?,
    };
    if results.is_complete() || !stop.load(Ordering::Relaxed) {
        return Ok(results);
    }
    if progress_output == ProgressOutput::Json {
        note!("{}", serde_json::json!({ "interrupted": true }));
    }
    let missing = plan.next_runs(&finished).len();
    Err(Failure::Failed(format!(
        "interrupted with {} runs done and at least {} to do; run the same command again to continue, or `hol report {}` for a report of the finished runs",
        group_digits(finished.runs().count() as u64),
        group_digits(missing as u64),
        dir.display()
    )))
}

/// Performs the runs of `plan` that are not in `finished`, and adds each to `store` as it ends.
pub fn execute_plan(
    plan: &Plan,
    store: &mut Store,
    finished: &mut RunResults,
    jobs: Option<usize>,
    progress_output: ProgressOutput,
) -> Result<(), Failure> {
    let mut progress = Progress::new(progress_output).with_earlier(finished_progress(plan, finished));
    // If no run is missing, this is the only progress output.
    progress.show(missing_progress(plan, finished));
    let mut points = (progress_output == ProgressOutput::Json).then(PointReporter::default);
    let archive = store.archive();
    let result = execute(plan, finished, thread_count(jobs), &STOP, &archive, |ended, now, finished| {
        progress.show(now);
        if let Some(ended) = ended {
            store.append(ended)?;
        }
        points.as_mut().map_or(Ok(()), |points| points.handle_run_end(ended, store, finished))
    });
    progress.finish();
    warn_of_engine(finished);
    Ok(result?)
}

/// Returns the progress that the finished runs of the plan amount to.
fn finished_progress(plan: &Plan, finished: &RunResults) -> hol_lab::Progress {
    let mut seen = BTreeSet::new();
    let points = plan.points().iter().filter(|point| seen.insert(point.id));
    let jobs = points.flat_map(|point| {
        finished.runs_of(point.id).map(move |run| Job { point, repetition: run.key.repetition })
    });
    jobs.fold(hol_lab::Progress::default(), |sum, job| hol_lab::Progress {
        runs: sum.runs + 1,
        messages: sum.messages.saturating_add(job.message_count()),
        work: sum.work.saturating_add(job.work()),
        ..sum
    })
}

/// Returns the progress of the missing runs at the moment before the first of them starts.
fn missing_progress(plan: &Plan, finished: &RunResults) -> hol_lab::Progress {
    let jobs = plan.next_runs(finished);
    jobs.iter().fold(hol_lab::Progress::default(), |sum, job| hol_lab::Progress {
        runs_wanted: sum.runs_wanted + 1,
        messages_wanted: sum.messages_wanted.saturating_add(job.message_count()),
        work_wanted: sum.work_wanted.saturating_add(job.work()),
        ..sum
    })
}

/// Prints the warnings about the kernel engine of all runs, each once.
pub fn warn_of_engine(finished: &RunResults) {
    let world_report = finished.runs().filter_map(|run| run.world_report.as_ref());
    let warnings = world_report.filter_map(|world_report| world_report.caution.as_ref());
    warnings.collect::<BTreeSet<_>>().iter().for_each(|warning| note!("warning: {warning}"));
}

/// Returns an error if runs of the directory failed. The error says how many failed, where their logs are, and
/// what to do.
pub fn check_no_failures(results: &Results, dir: &Path) -> Result<(), Failure> {
    let Some(first) = results.failed.first() else { return Ok(()) };
    Err(Failure::Failed(format!(
        "{} of {} runs failed and are not in the results above; the first: {first}\n{} has a log of each; run the same command again to retry them",
        group_digits(results.failed.len() as u64),
        group_digits(results.needed),
        dir.join("failed").display()
    )))
}
