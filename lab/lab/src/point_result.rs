//! A point with its runs, and the values over all of them.

use std::sync::Arc;

use hol_base::{Digest, Digester};
use hol_measure::{
    CONFIDENCE, ConfidenceInterval, Distribution, Interval, MeanDelayBreakdown, Summary, TotalDelayBreakdown,
    is_steady,
};
use hol_workloads::SizeClass;

use crate::defined_metric::DefinedMetric;
use crate::metric::Metric;
use crate::point::Point;
use crate::run_result::RunResult;
use crate::run_results::RunResults;

/// A point with its runs.
#[derive(Debug, Clone)]
pub struct PointResult {
    /// The point.
    pub point: Point,
    /// Runs of the point in the order of the repetitions.
    pub runs: Vec<Arc<RunResult>>,
    /// Whether the point has all the repetitions that it needs.
    pub complete: bool,
}

/// The results of one class of message sizes, over all repetitions.
#[derive(Debug, Clone, Default)]
pub struct ClassResult {
    /// Response times of the messages.
    pub latency: Distribution,
    /// Mean response time of each repetition that has one, in ms.
    pub means_ms: Vec<f64>,
}

impl PointResult {
    /// Creates the result of a point. It consists of the finished runs among the point's first `needed`
    /// repetitions.
    pub(crate) fn new(point: &Point, needed: u32, finished: &RunResults) -> Self {
        let runs: Vec<Arc<RunResult>> = finished.runs_of(point.id).take(needed as usize).cloned().collect();
        Self { point: point.clone(), complete: runs.len() == needed as usize, runs }
    }

    /// Returns the mean latency of each repetition, in ms; `None` if no message was completed.
    pub fn means_ms(&self) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| run.summary.latency.mean_ms()).collect()
    }

    /// Returns the mean latency with its 95 % confidence interval over the repetitions, in ms; `None` if no message was completed.
    pub fn mean_ms(&self) -> Option<Interval> {
        let means: Vec<f64> = self.means_ms().into_iter().flatten().collect();
        Interval::of(&means, CONFIDENCE)
    }

    /// Returns the mean latency over the repetitions, in ms; `None` if no message was completed. Its interval
    /// accounts for skewed repetitions, and for timeouts that are too rare to have occurred.
    pub fn skew_adjusted_mean_ms(&self) -> Option<ConfidenceInterval> {
        let means: Vec<f64> = self.means_ms().into_iter().flatten().collect();
        let bounds = Metric::ResponseTime.limit(ConfidenceInterval::of_mean(&means, CONFIDENCE)?);
        Some(bounds.with_allowance(self.allowance()))
    }

    /// Returns the mean latency of each repetition in ms, in ascending order. A value is infinite if no message was
    /// completed, or if the run ended early, because the slowest messages are then missing.
    pub fn sorted_means_ms(&self) -> Vec<f64> {
        let mean = |run: &Arc<RunResult>| run.summary.latency.mean_ms().filter(|_| run.stop_reason.is_none());
        let mut means: Vec<f64> = self.runs.iter().map(|run| mean(run).unwrap_or(f64::INFINITY)).collect();
        means.sort_by(f64::total_cmp);
        means
    }

    /// Returns the median of the repetitions' mean latencies, in ms.
    pub fn median_run_ms(&self) -> Option<ConfidenceInterval> {
        ConfidenceInterval::of_median(&self.sorted_means_ms(), CONFIDENCE)
    }

    /// Returns whether longer runs would have the same mean latency, as far as these results show. True for
    /// programs, whose runs have no other length.
    pub fn is_steady(&self) -> bool {
        if self.point.workload.runs_programs() {
            return true;
        }
        let halves = self.runs.iter().filter_map(|run| run.summary.halves.means_ms());
        is_steady(&halves.collect::<Vec<_>>())
    }

    /// Returns whether the mean is as precise as the experiment requires; `None` if it requires no
    /// precision.
    pub fn is_precise(&self) -> Option<bool> {
        let asked = self.point.precision?.value();
        Some(self.mean_ms().is_some_and(|mean| mean.relative_half_width() <= asked))
    }

    /// Returns the distribution of the latencies of all repetitions.
    pub fn latency(&self) -> Distribution {
        let mut all = Distribution::default();
        self.runs.iter().for_each(|run| all.merge(&run.summary.latency));
        all
    }

    /// Returns the results of each class of message sizes, by name. Empty if all sizes are the same, or if an
    /// older version wrote the runs.
    pub fn classes(&self) -> Vec<(String, ClassResult)> {
        let of_class = |(index, class): (usize, SizeClass)| {
            let runs: Option<Vec<&Summary>> = self.runs.iter().map(|run| run.classes.get(index)).collect();
            let mut of_class = ClassResult::default();
            for run in runs? {
                of_class.latency.merge(&run.latency);
                of_class.means_ms.extend(run.latency.mean_ms());
            }
            Some((class.name, of_class))
        };
        self.point.workload.classes().into_iter().enumerate().filter_map(of_class).collect()
    }

    /// Returns the mean delay of a completed message by component, in ms; `None` if no message was
    /// completed.
    pub fn mean_delay_breakdown(&self) -> Option<MeanDelayBreakdown> {
        let mut total = TotalDelayBreakdown::default();
        self.runs.iter().for_each(|run| total.merge(&run.summary.split));
        let completed = self.completed();
        (completed > 0).then(|| total.mean(completed))
    }

    /// Returns the number of messages that were due.
    pub fn offered(&self) -> u64 {
        self.sum(|run| run.summary.offered)
    }
    /// Returns the number of messages that were delivered and, if they need a reply, answered.
    pub fn completed(&self) -> u64 {
        self.sum(|run| run.summary.completed)
    }
    /// Returns the number of messages that were due and not completed.
    pub fn failed(&self) -> u64 {
        self.offered() - self.completed()
    }
    /// Returns the number of packets that the hosts sent.
    pub fn packets(&self) -> u64 {
        self.sum(|run| run.packets)
    }
    /// Returns the metrics that the experiment's programs report.
    pub fn program_metrics(&self) -> impl Iterator<Item = DefinedMetric> {
        self.point.metrics().map(|(name, reading)| DefinedMetric::new(name, reading))
    }
    /// Returns the number of runs in which nothing was delivered after a disruption of the path.
    pub fn unrecovered_runs(&self) -> usize {
        self.runs.iter().filter(|run| !run.has_recovered()).count()
    }
    /// Returns the wall-clock time of the point's runs, in seconds.
    pub fn wall_s(&self) -> f64 {
        self.runs.iter().map(|run| run.wall_s).sum()
    }

    /// Returns the digest over all runs.
    pub fn digest(&self) -> Digest {
        digest_of(&self.runs)
    }

    /// Returns the reason why a run of the point ended early; `None` if none did.
    pub fn stop_reason(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.stop_reason.as_deref())
    }

    /// Returns the mean over all runs of the number that `value` returns, with its confidence interval.
    pub(crate) fn interval_over_runs(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Interval> {
        Interval::of(&self.runs.iter().filter_map(|run| value(run)).collect::<Vec<_>>(), CONFIDENCE)
    }

    fn sum(&self, count: impl Fn(&RunResult) -> u64) -> u64 {
        self.runs.iter().map(|run| count(run)).sum()
    }
}

/// Returns the digest over all these runs.
pub(crate) fn digest_of<'r>(runs: impl IntoIterator<Item = &'r Arc<RunResult>>) -> Digest {
    let mut digester = Digester::new();
    for run in runs {
        let Digest(digest) = run.summary.digest;
        digester.add_all([digest as u64, (digest >> 64) as u64]);
    }
    digester.finish()
}
