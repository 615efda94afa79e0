//! A point in both worlds.

use hol_lab::{Point, PointResult};

use super::check::{self, Check};
use super::measured::Measured;
use crate::closed_form;
use crate::data::{Cell, Conditions};

/// A point in both worlds, side by side.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The point, as the kernel was asked.
    pub point: Point,
    /// What the kernel measured.
    pub kernel: Measured,
    /// What the model says.
    pub model: Measured,
    /// The means; `None` where a world completed nothing.
    pub mean: Option<Check>,
    /// The 99 % quantiles; `None` where a world has none.
    pub p99: Option<Check>,
    /// The mean that the closed form gives, in ms, where it applies.
    pub closed_form: Option<f64>,
    /// Kolmogorov–Smirnov distance of the distributions.
    pub ks: Option<f64>,
    /// Wasserstein-1 distance of the distributions, in ms.
    pub wasserstein_ms: Option<f64>,
    /// The repetition in which the kernel is furthest from the model's mean: the one to look into.
    pub furthest: u32,
    /// What the network and the workload were.
    pub conditions: Conditions,
}

impl Compared {
    /// Compares the runs of one point.
    pub fn of(kernel: &PointResult, model: &PointResult) -> Self {
        let cell = Cell::from(kernel);
        let point = kernel.point.clone();
        let furthest = furthest(kernel, model);
        let closed_form = closed_form::mean(&cell);
        let [kernel, model] = [kernel, model].map(Measured::of);
        let both = |a, b, tolerance| Option::zip(a, b).map(|(a, b)| Check::new(a, b, tolerance));
        Self {
            point,
            mean: both(kernel.mean, model.mean, check::MEAN),
            p99: both(kernel.p99, model.p99, check::P99),
            closed_form,
            ks: kernel.latency.ks_distance(&model.latency),
            wasserstein_ms: kernel.latency.wasserstein_ms(&model.latency),
            furthest,
            kernel,
            model,
            conditions: cell.conditions,
        }
    }

    /// Both numbers agree; one that neither world has agrees too.
    pub fn agrees(&self) -> bool {
        let Self { kernel, model, .. } = self;
        let same = |check: Option<Check>, neither| check.map_or(neither, |check| check.agrees());
        same(self.mean, kernel.mean.is_none() && model.mean.is_none())
            && same(self.p99, kernel.p99.is_none() && model.p99.is_none())
    }

    /// Whether they agree and whether that says much, in words.
    pub fn verdict(&self) -> &'static str {
        match (self.agrees(), self.says_little()) {
            (true, false) => "agrees",
            (true, true) => "agrees, says little",
            (false, false) => "differs",
            (false, true) => "differs, says little",
        }
    }

    /// The kernel's repetitions leave more open in one of the numbers than what they may differ.
    pub fn says_little(&self) -> bool {
        self.checks().any(|check| check.says_little())
    }

    /// The larger of the two differences in units of its tolerance; infinite where a world has no number.
    pub fn excess(&self) -> f64 {
        let known = self.checks().map(|check| check.excess()).fold(0.0, f64::max);
        if self.agrees() || self.checks().count() == 2 { known } else { f64::INFINITY }
    }

    /// Repetitions of the kernel until both intervals are as narrow as the tolerance, going by those that there are.
    pub fn repetitions_needed(&self) -> Option<u64> {
        self.checks().map(|check| check.repetitions_needed()).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn checks(&self) -> impl Iterator<Item = Check> {
        [self.mean, self.p99].into_iter().flatten()
    }
}

fn furthest(kernel: &PointResult, model: &PointResult) -> u32 {
    let centre = model.mean_ms().map_or(0.0, |mean| mean.mean);
    let runs = kernel.runs.iter().map(|run| {
        let distance = run.summary.latency.mean_ms().map_or(f64::INFINITY, |mean| (mean - centre).abs());
        (run.key.repetition, distance)
    });
    runs.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(repetition, _)| repetition)
}
