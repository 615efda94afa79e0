//! The results of a finished (or interrupted) plan, point by point.

use std::collections::BTreeSet;

use hol_base::Digest;

use crate::failed_runs::FailedRun;
use crate::manifest::Manifest;
use crate::plan::{Plan, repetitions_needed};
use crate::point::{Point, RunKey};
use crate::point_result::{PointResult, digest_of};
use crate::run_results::RunResults;

/// The contents of a result directory.
#[derive(Debug, Clone)]
pub struct Results {
    /// The experiments, the version of the program, and the machine.
    pub manifest: Manifest,
    /// The points in the order of the plan.
    pub points: Vec<PointResult>,
    /// Number of runs that all points need; a run that several points share counts once.
    pub needed: u64,
    /// The number of runs that are missing.
    pub missing: u64,
    /// The missing runs that failed.
    pub failed: Vec<FailedRun>,
}

impl Results {
    /// Creates the results from the runs in `finished`, which it assigns to the points of the manifest.
    pub fn new(manifest: Manifest, finished: &RunResults) -> Self {
        let points = manifest.points.iter().map(|point| point_result(point, finished)).collect();
        let needed = manifest.points.iter().map(|point| (point.id, repetitions_needed(point, finished)));
        let keys = |(point, count)| (0..count).map(move |repetition| RunKey { point, repetition });
        let plan = Plan::of_manifest(&manifest);
        let runs: BTreeSet<RunKey> = needed.flat_map(keys).filter(|key| plan.includes(*key)).collect();
        let missing = runs.iter().filter(|run| !finished.contains(**run)).count() as u64;
        let failed = finished.failed().filter(|run| runs.contains(&run.key)).cloned().collect();
        Self { manifest, points, needed: runs.len() as u64, missing, failed }
    }

    /// Returns the points of one experiment.
    pub fn experiment(&self, name: &str) -> impl Iterator<Item = &PointResult> {
        self.points.iter().filter(move |result| result.point.experiment == name)
    }

    /// Returns whether no run is missing.
    pub const fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Returns the digest over all runs.
    pub fn digest(&self) -> Digest {
        digest_of(self.points.iter().flat_map(|point| &point.runs))
    }
}

impl Plan {
    /// Returns the results of all points from the completed runs. Needs no result directory.
    pub fn point_results(&self, finished: &RunResults) -> Vec<PointResult> {
        self.points().iter().map(|point| point_result(point, finished)).collect()
    }
}

fn point_result(point: &Point, finished: &RunResults) -> PointResult {
    PointResult::new(point, repetitions_needed(point, finished), finished)
}
