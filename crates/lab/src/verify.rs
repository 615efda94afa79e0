//! Does runs of a result directory again: same settings, same seed, same result.

use std::fmt;
use std::sync::atomic::AtomicBool;

use serde_json::Value;

use crate::error::LabError;
use crate::job::Job;
use crate::point::Point;
use crate::pool;
use crate::results::Results;
use crate::run::{self, Outcome};
use crate::run_result::RunResult;

/// A run that gave something else than before.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Its point.
    pub point: Point,
    /// Its repetition, from 0.
    pub repetition: u32,
    /// What is not the same, in words; never empty.
    pub fields: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, repetition {}: {}", self.point, self.repetition, self.fields.join("; "))
    }
}

/// Repeats `sample` runs, spread evenly over the directory, or all: how many were done, and which differ.
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
    let take = |ended: Result<Option<Difference>, LabError>| -> Result<(), LabError> {
        differences.extend(ended?);
        done += 1;
        Ok(())
    };
    pool::for_each(&chosen, threads, stop, |(point, stored)| again(point, stored), take)?;
    differences.sort_by_key(|d| (d.point.id, d.repetition));
    Ok((done, differences))
}

/// Repeats one run.
fn again(point: &Point, stored: &RunResult) -> Result<Option<Difference>, LabError> {
    let repetition = stored.key.repetition;
    let now = match run::run(Job { point, repetition })? {
        Outcome::Done(now, _) => now,
        Outcome::Failed(run) => {
            let fields = vec![format!("it failed: {}", run.failed)];
            return Ok(Some(Difference { point: point.clone(), repetition, fields }));
        }
    };
    let mut fields = Vec::new();
    compare("", &fixed(stored), &fixed(&now), &mut fields);
    Ok((!fields.is_empty()).then(|| Difference { point: point.clone(), repetition, fields }))
}

/// What a run measured, without the time that it took, which is never the same.
fn fixed(run: &RunResult) -> Value {
    let run = RunResult { wall_s: 0.0, ..run.clone() };
    serde_json::to_value(run).expect("a run is JSON")
}

/// Names what differs, by its keys.
fn compare(name: &str, stored: &Value, now: &Value, fields: &mut Vec<String>) {
    match (stored, now) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                compare(&name, old.get(key).unwrap_or(&Value::Null), value, fields);
            }
        }
        (old, new) if old == new => (),
        (Value::Array(_), _) | (_, Value::Array(_)) => fields.push(format!("{name} is another")),
        (old, new) => fields.push(format!("{name} was {old} and is now {new}")),
    }
}
