//! One number of each run of a point.

use std::sync::Arc;

use hol_lab::{Metric, PointResult, RunResult};
use hol_measure::{Bounds, CONFIDENCE};

/// One number of each run, in the order of the repetitions, and the median run.
#[derive(Debug, Clone, PartialEq)]
pub struct Runs {
    /// Of each run; infinite where it has none, and worse than all that have one.
    pub values: Vec<f64>,
    /// The median run with its 95 % interval, which lies between two runs whatever the distribution; infinite ends with fewer
    /// than six. `None` without runs, or if most have no number.
    pub median: Option<Bounds>,
}

impl Runs {
    /// A time in ms of each run; what is missing of a run that ended early is the slowest, so that it has none.
    pub fn times(result: &PointResult, of: impl Fn(&RunResult) -> Option<f64>) -> Self {
        let time = |run: &Arc<RunResult>| of(run).filter(|_| run.stopped.is_none());
        Self::of(result.runs.iter().map(|run| time(run).unwrap_or(f64::INFINITY)).collect())
    }

    /// The throughput of each run in kbit/s; without one it is lower than any.
    pub fn throughputs(result: &PointResult) -> Self {
        Self::of(
            result
                .values(Metric::Throughput)
                .into_iter()
                .map(|kbps| kbps.unwrap_or(f64::NEG_INFINITY))
                .collect(),
        )
    }

    /// The ends of the median's interval, or the least and the greatest run where they are too few for one.
    pub fn ends(&self) -> Option<(f64, f64)> {
        let Bounds { low, high, .. } = self.median?;
        let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some((low.max(least), high.min(most)))
    }

    /// These numbers.
    pub fn of(values: Vec<f64>) -> Self {
        let median = Bounds::of_median(&values, CONFIDENCE).filter(|median| median.value.is_finite());
        Self { values, median }
    }
}
