//! The runs of a plan that have ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::failed_runs::FailedRun;
use crate::point::{PointId, RunKey};
use crate::run_result::RunResult;

/// The results of completed runs, and the runs that failed.
#[derive(Debug, Clone, Default)]
pub struct RunResults {
    runs: BTreeMap<RunKey, Arc<RunResult>>,
    /// The runs that failed and have not been completed since.
    failed: BTreeMap<RunKey, FailedRun>,
}

impl RunResults {
    /// Adds a completed run, unless it is known already.
    pub fn insert(&mut self, run: RunResult) {
        self.failed.remove(&run.key);
        self.runs.entry(run.key).or_insert_with(|| Arc::new(run));
    }

    /// Adds a failed run, which has to be repeated.
    pub fn insert_failed(&mut self, run: FailedRun) {
        if !self.contains(run.key) {
            self.failed.insert(run.key, run);
        }
    }

    /// Returns the runs that failed and have not been completed since, in the order of points and repetitions.
    pub fn failed(&self) -> impl Iterator<Item = &FailedRun> {
        self.failed.values()
    }

    /// Returns the result of a run, if it is completed.
    pub fn get(&self, key: RunKey) -> Option<&RunResult> {
        self.runs.get(&key).map(Arc::as_ref)
    }

    /// Returns whether a run is completed.
    pub fn contains(&self, key: RunKey) -> bool {
        self.runs.contains_key(&key)
    }

    /// Returns all completed runs, in the order of points and repetitions.
    pub fn runs(&self) -> impl Iterator<Item = &RunResult> {
        self.runs.values().map(Arc::as_ref)
    }

    /// Returns the completed runs of a point, from the first repetition to the last one before the first missing
    /// repetition.
    pub fn runs_of(&self, point: PointId) -> impl Iterator<Item = &Arc<RunResult>> {
        (0..).map_while(move |repetition| self.runs.get(&RunKey { point, repetition }))
    }
}
