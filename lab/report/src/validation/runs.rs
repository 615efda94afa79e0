//! One value per run of a point.

use std::sync::Arc;

use hol_lab::{Metric, PointResult, RunResult};
use hol_measure::{CONFIDENCE, ConfidenceInterval};

/// One value per run, in the order of the repetitions, and the median.
#[derive(Debug, Clone, PartialEq)]
pub struct RunValues {
    /// The values; a run without one has an infinite value that is worse than all others.
    pub values: Vec<f64>,
    /// The median with its 95 % interval, which is distribution-free and lies between two runs; infinite ends with fewer than six runs.
    /// `None` without runs, or if most have no value.
    pub median: Option<ConfidenceInterval>,
}

impl RunValues {
    /// Collects a time of each run, in ms; infinite for runs that ended early, because their slowest messages are missing.
    pub fn times(result: &PointResult, of: impl Fn(&RunResult) -> Option<f64>) -> Self {
        let time = |run: &Arc<RunResult>| of(run).filter(|_| run.stop_reason.is_none());
        Self::of(result.runs.iter().map(|run| time(run).unwrap_or(f64::INFINITY)).collect())
    }

    /// Collects the throughput of each run in kbit/s; a missing throughput counts as lower than any value.
    pub fn throughputs(result: &PointResult) -> Self {
        Self::of(
            result
                .values(Metric::Throughput)
                .into_iter()
                .map(|kbps| kbps.unwrap_or(f64::NEG_INFINITY))
                .collect(),
        )
    }

    /// Returns the ends of the median's interval, or the lowest and the highest run if the runs are too few for an
    /// interval.
    pub fn range(&self) -> Option<(f64, f64)> {
        let ConfidenceInterval { low, high, .. } = self.median?;
        let min = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some((low.max(min), high.min(max)))
    }

    /// Creates the runs from their values.
    pub fn of(values: Vec<f64>) -> Self {
        let median =
            ConfidenceInterval::of_median(&values, CONFIDENCE).filter(|median| median.value.is_finite());
        Self { values, median }
    }
}
