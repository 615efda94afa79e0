//! Does runs of a result directory again: same settings, same seed, same digest.

use std::sync::atomic::AtomicBool;

use hol_base::Digest;

use crate::error::LabError;
use crate::plan::Job;
use crate::point::Point;
use crate::pool;
use crate::results::Results;
use crate::run;

/// A run that gave something else than before.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Its point.
    pub point: Point,
    /// Its repetition, from 0.
    pub repetition: u32,
    /// The digest in the directory.
    pub stored: Digest,
    /// The digest now.
    pub now: Digest,
}

/// Repeats `sample` runs, spread evenly over the directory, or all: how many were done, and which differ.
pub fn verify(
    results: &Results,
    sample: Option<usize>,
    threads: usize,
    stop: &AtomicBool,
) -> Result<(usize, Vec<Difference>), LabError> {
    let runs: Vec<(Job<'_>, Digest)> = results
        .points
        .iter()
        .flat_map(|result| result.runs.iter().map(move |run| (result, run)))
        .map(|(result, run)| {
            let job = Job { point: &result.point, repetition: run.key.repetition };
            (job, run.summary.digest)
        })
        .collect();
    let count = sample.unwrap_or(runs.len()).min(runs.len());
    let chosen: Vec<_> = (0..count).map(|k| runs[k * runs.len() / count]).collect();

    let again = |(job, stored): &(Job<'_>, Digest)| -> Result<Option<Difference>, LabError> {
        let (Job { point, repetition }, stored) = (*job, *stored);
        let now = run::run(*job)?.0.summary.digest;
        Ok((now != stored).then(|| Difference { point: point.clone(), repetition, stored, now }))
    };
    let mut done = 0;
    let mut differences = Vec::new();
    let take = |ended: Result<Option<Difference>, LabError>| -> Result<(), LabError> {
        differences.extend(ended?);
        done += 1;
        Ok(())
    };
    pool::for_each(&chosen, threads, stop, again, take)?;
    differences.sort_by_key(|d| (d.point.id, d.repetition));
    Ok((done, differences))
}
