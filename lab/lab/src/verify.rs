//! Verifies a result directory: repeats runs with the same settings and seeds, and compares the results.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::archive::Archive;
use crate::error::LabError;
use crate::job::Job;
use crate::point::Point;
use crate::pool;
use crate::results::Results;
use crate::run::{self, RunOutcome};
use crate::run_result::RunResult;

/// A run that had another result when it was repeated.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Point of the run.
    pub point: Point,
    /// The index of the repetition, from 0.
    pub repetition: u32,
    /// The names of the fields that differ; never empty.
    pub fields: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, repetition {}: {}", self.point, self.repetition, self.fields.join("; "))
    }
}

/// Repeats all runs of [repeatable](check_repeatable) worlds or, with `sample`, this many of them, spread evenly.
/// Returns the number of repeated runs, and the runs that differ.
pub fn verify(
    results: &Results,
    sample: Option<usize>,
    threads: usize,
    stop: &AtomicBool,
) -> Result<(usize, Vec<Difference>), LabError> {
    let mut runs: Vec<(&Point, &RunResult)> = Vec::new();
    for result in &results.points {
        runs.extend(result.runs.iter().map(|run| (&result.point, run.as_ref())));
    }
    let count = sample.unwrap_or(runs.len()).min(runs.len());
    let chosen: Vec<_> = (0..count).map(|k| runs[k * runs.len() / count]).collect();

    let mut done = 0;
    let mut differences = Vec::new();
    let take = |ended: Result<Option<Vec<Difference>>, LabError>| -> Result<(), LabError> {
        if let Some(found) = ended? {
            differences.extend(found);
            done += 1;
        }
        Ok(())
    };
    let archive = Archive::discarding(results.manifest.series);
    let work =
        |(point, stored): &(&Point, &RunResult), _: &dyn Fn(_) -> bool| repeat(point, stored, &archive, stop);
    pool::for_each(&chosen, threads, stop, work, take)?;
    differences.sort_by_key(|d| (d.point.id, d.repetition));
    Ok((done, differences))
}

/// Returns an error if runs of a world cannot be repeated exactly.
pub fn check_repeatable(results: &Results) -> Result<(), LabError> {
    let mut points = results.points.iter().map(|result| &result.point);
    match points.find(|point| point.world.open().is_ok_and(|world| !world.is_repeatable())) {
        None => Ok(()),
        Some(point) => Err(LabError::NotRepeatable(point.world.clone())),
    }
}

/// Repeats one run and compares the results; returns `None` if the run was interrupted.
fn repeat(
    point: &Point,
    stored: &RunResult,
    archive: &Archive,
    stop: &AtomicBool,
) -> Result<Option<Vec<Difference>>, LabError> {
    let repetition = stored.key.repetition;
    let mut fields = Vec::new();
    let mut goes_on = |_| !stop.load(Ordering::Relaxed);
    match run::run(Job { point, repetition }, archive, &mut goes_on)? {
        RunOutcome::Done(now) => fields = differences(stored, &now),
        RunOutcome::Failed(run) => fields.push(format!("the run failed: {}", run.failed)),
        RunOutcome::Interrupted => return Ok(None),
    }
    let difference = (!fields.is_empty()).then(|| Difference { point: point.clone(), repetition, fields });
    Ok(Some(difference.into_iter().collect()))
}

/// Returns the names of the fields in which two results of one run differ.
pub(crate) fn differences(stored: &RunResult, now: &RunResult) -> Vec<String> {
    let mut fields = Vec::new();
    compare("", &without_wall_time(stored), &without_wall_time(now), &mut fields);
    fields
}

/// Returns a result without its wall-clock time, which always differs.
fn without_wall_time(run: &RunResult) -> Value {
    let run = RunResult { wall_s: 0.0, ..run.clone() };
    // Converted through text, which can represent sums beyond 64 bits.
    let text = serde_json::to_string(&run).expect("a run can be serialised");
    serde_json::from_str(&text).expect("the text was just written")
}

/// Compares two values of the field `name`, and adds the names of the fields that differ to `fields`.
fn compare(name: &str, stored: &Value, now: &Value, fields: &mut Vec<String>) {
    match (stored, now) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                compare(&name, old.get(key).unwrap_or(&Value::Null), value, fields);
            }
        }
        (old, new) if old == new => (),
        (Value::Array(_), _) | (_, Value::Array(_)) => fields.push(format!("{name} has different values")),
        (old, new) => fields.push(format!("{name} was {old} and is now {new}")),
    }
}
