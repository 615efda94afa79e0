//! What a finished (or interrupted) plan measured, point by point.

use std::collections::BTreeSet;
use std::sync::Arc;

use hol_base::{Digest, Digester};
use hol_measure::{Bounds, CONFIDENCE, Distribution, Interval, SplitMean, SplitTotal, is_steady};

use crate::failed::FailedRun;
use crate::finished::Finished;
use crate::manifest::Manifest;
use crate::metric::Metric;
use crate::plan::{Plan, repetitions_wanted};
use crate::point::{Point, RunKey};
use crate::run_result::RunResult;
use crate::told::Told;

/// Everything a result directory holds.
#[derive(Debug, Clone)]
pub struct Results {
    /// What was asked, of which program, on which machine.
    pub manifest: Manifest,
    /// In the order of the plan.
    pub points: Vec<PointResult>,
    /// Runs that all points need together; a run that points share counts once.
    pub wanted: u64,
    /// How many of them are not there.
    pub missing: u64,
    /// Those of them that failed when they were tried.
    pub failed: Vec<FailedRun>,
}

/// A point with its runs.
#[derive(Debug, Clone)]
pub struct PointResult {
    /// The point.
    pub point: Point,
    /// Its runs in the order of the repetitions.
    pub runs: Vec<Arc<RunResult>>,
    /// Whether all repetitions that it needs are there.
    pub complete: bool,
}

impl Results {
    /// Puts the runs to their points.
    pub fn new(manifest: Manifest, finished: &Finished) -> Self {
        let points = manifest.points.iter().map(|point| PointResult::new(point, finished)).collect();
        let wanted = manifest.points.iter().map(|point| (point.id, repetitions_wanted(point, finished)));
        let keys = |(point, count)| (0..count).map(move |repetition| RunKey { point, repetition });
        let plan = Plan::of_manifest(&manifest);
        let runs: BTreeSet<RunKey> = wanted.flat_map(keys).filter(|key| plan.includes(*key)).collect();
        let missing = runs.iter().filter(|run| !finished.contains(**run)).count() as u64;
        let failed = finished.failed().filter(|run| runs.contains(&run.key)).cloned().collect();
        Self { manifest, points, wanted: runs.len() as u64, missing, failed }
    }

    /// The points of one experiment.
    pub fn experiment(&self, name: &str) -> impl Iterator<Item = &PointResult> {
        self.points.iter().filter(move |result| result.point.experiment == name)
    }

    /// Whether all runs are there that are wanted of it.
    pub const fn complete(&self) -> bool {
        self.missing == 0
    }

    /// One digest over all runs.
    pub fn digest(&self) -> Digest {
        digest_of(self.points.iter().flat_map(|point| &point.runs))
    }
}

impl PointResult {
    fn new(point: &Point, finished: &Finished) -> Self {
        let wanted = repetitions_wanted(point, finished) as usize;
        let runs: Vec<Arc<RunResult>> = finished.of(point.id).take(wanted).cloned().collect();
        Self { point: point.clone(), complete: runs.len() == wanted, runs }
    }

    /// The mean latency in ms of each repetition; `None` where nothing completed.
    pub fn means_ms(&self) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| run.summary.latency.mean_ms()).collect()
    }

    /// The mean latency in ms with its 95 % interval over the repetitions; `None` if nothing completed.
    pub fn mean_ms(&self) -> Option<Interval> {
        let means: Vec<f64> = self.means_ms().into_iter().flatten().collect();
        Interval::of(&means, CONFIDENCE)
    }

    /// The mean latency in ms over the repetitions, with an interval that follows their shape and has room for timeouts that they
    /// did not meet; `None` if nothing completed.
    pub fn shaped_mean_ms(&self) -> Option<Bounds> {
        let means: Vec<f64> = self.means_ms().into_iter().flatten().collect();
        Some(Bounds::of_mean(&means, CONFIDENCE)?.allowing(self.unseen()))
    }

    /// The mean latencies of the repetitions in ms, ascending; infinite where nothing completed, or a run ended early: what is
    /// missing there is the slowest.
    pub fn sorted_means_ms(&self) -> Vec<f64> {
        let mean = |run: &Arc<RunResult>| run.summary.latency.mean_ms().filter(|_| run.stopped.is_none());
        let mut means: Vec<f64> = self.runs.iter().map(|run| mean(run).unwrap_or(f64::INFINITY)).collect();
        means.sort_by(f64::total_cmp);
        means
    }

    /// The median of the repetitions' mean latencies in ms.
    pub fn median_run_ms(&self) -> Option<Bounds> {
        Bounds::of_median(&self.sorted_means_ms(), CONFIDENCE)
    }

    /// How many runs did not carry their load.
    pub fn collapsed(&self) -> usize {
        let is_due = self.point.offered_rate() > 0.0 && !self.point.path_changes();
        self.runs.iter().filter(|run| run.collapsed() || (is_due && run.summary.backlog_grew())).count()
    }

    /// Whether the mean latency would be the same if the runs were longer, as far as they show it. What programs ask for has a
    /// beginning and an end.
    pub fn is_steady(&self) -> bool {
        if self.point.workload.is_programs() {
            return true;
        }
        let halves = self.runs.iter().filter_map(|run| run.summary.halves.means_ms());
        is_steady(&halves.collect::<Vec<_>>())
    }

    /// Whether the mean is as precise as the experiment asks, where it asks.
    pub fn precise(&self) -> Option<bool> {
        let asked = self.point.precision?.value();
        Some(self.mean_ms().is_some_and(|mean| mean.relative() <= asked))
    }

    /// The latencies of all repetitions together.
    pub fn latency(&self) -> Distribution {
        let mut all = Distribution::default();
        self.runs.iter().for_each(|run| all.merge(&run.summary.latency));
        all
    }

    /// Where the time of a completed message went, in ms; `None` if nothing completed.
    pub fn split_ms(&self) -> Option<SplitMean> {
        let mut total = SplitTotal::default();
        self.runs.iter().for_each(|run| total.merge(&run.summary.split));
        let completed = self.completed();
        (completed > 0).then(|| total.mean(completed))
    }

    /// Messages that were to be sent.
    pub fn offered(&self) -> u64 {
        self.sum(|run| run.summary.offered)
    }
    /// Messages that were delivered (and answered).
    pub fn completed(&self) -> u64 {
        self.sum(|run| run.summary.completed)
    }
    /// Messages that were offered and not completed.
    pub fn failed(&self) -> u64 {
        self.offered() - self.completed()
    }
    /// Packets that the hosts sent.
    pub fn packets(&self) -> u64 {
        self.sum(|run| run.packets)
    }
    /// The value of each repetition.
    pub fn values(&self, metric: Metric) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| metric.of_run(&self.point, run)).collect()
    }
    /// The mean of the repetitions that have a value.
    pub fn mean_of(&self, metric: Metric) -> Option<Interval> {
        self.over_runs(|run| metric.of_run(&self.point, run))
    }
    /// The metrics of the experiment's own, which programs tell.
    pub fn told(&self) -> impl Iterator<Item = Told> {
        self.point.metrics().map(|(name, reading)| Told::new(name, reading))
    }
    /// How many runs delivered nothing after a disruption of the path.
    pub fn not_recovered(&self) -> usize {
        self.runs.iter().filter(|run| !run.recovered()).count()
    }
    /// Wall-clock time inside the simulation, in seconds.
    pub fn wall_s(&self) -> f64 {
        self.runs.iter().map(|run| run.wall_s).sum()
    }

    /// One digest over all runs.
    pub fn digest(&self) -> Digest {
        digest_of(&self.runs)
    }

    /// Why a run ended before everything was done, if one did.
    pub fn stopped(&self) -> Option<&str> {
        self.runs.iter().find_map(|run| run.stopped.as_deref())
    }

    pub(crate) fn over_runs(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Interval> {
        Interval::of(&self.runs.iter().filter_map(|run| value(run)).collect::<Vec<_>>(), CONFIDENCE)
    }

    fn sum(&self, count: impl Fn(&RunResult) -> u64) -> u64 {
        self.runs.iter().map(|run| count(run)).sum()
    }
}

impl Plan {
    /// The points with the runs that are finished, without a directory.
    pub fn results(&self, finished: &Finished) -> Vec<PointResult> {
        self.points().iter().map(|point| PointResult::new(point, finished)).collect()
    }
}

fn digest_of<'r>(runs: impl IntoIterator<Item = &'r Arc<RunResult>>) -> Digest {
    let mut digester = Digester::new();
    for run in runs {
        let Digest(digest) = run.summary.digest;
        digester.add_all([digest as u64, (digest >> 64) as u64]);
    }
    digester.finish()
}
