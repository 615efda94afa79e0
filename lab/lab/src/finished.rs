//! The runs of a plan that have ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::failed::FailedRun;
use crate::point::{PointId, RunKey};
use crate::run_result::RunResult;

/// The runs that are done, and those that failed.
#[derive(Debug, Clone, Default)]
pub struct Finished {
    runs: BTreeMap<RunKey, Arc<RunResult>>,
    failed: BTreeMap<RunKey, FailedRun>,
}

impl Finished {
    /// Adds a run; a run that is known stays as it is.
    pub fn insert(&mut self, run: RunResult) {
        self.failed.remove(&run.key);
        self.runs.entry(run.key).or_insert_with(|| Arc::new(run));
    }

    /// Adds a run that failed; it stays wanted.
    pub fn fail(&mut self, run: FailedRun) {
        if !self.contains(run.key) {
            self.failed.insert(run.key, run);
        }
    }

    /// The runs that failed and have not been done since, by point and repetition.
    pub fn failed(&self) -> impl Iterator<Item = &FailedRun> {
        self.failed.values()
    }

    /// What came of a run, if it is done.
    pub fn get(&self, key: RunKey) -> Option<&RunResult> {
        self.runs.get(&key).map(Arc::as_ref)
    }

    /// Whether a run is done.
    pub fn contains(&self, key: RunKey) -> bool {
        self.runs.contains_key(&key)
    }

    /// Every run, by point and repetition.
    pub fn runs(&self) -> impl Iterator<Item = &RunResult> {
        self.runs.values().map(Arc::as_ref)
    }

    /// The runs of a point from the first repetition on, without gaps.
    pub fn of(&self, point: PointId) -> impl Iterator<Item = &Arc<RunResult>> {
        (0..).map_while(move |repetition| self.runs.get(&RunKey { point, repetition }))
    }
}
