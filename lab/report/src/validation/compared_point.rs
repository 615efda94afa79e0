//! The comparison of a point in both worlds.

use hol_lab::{Point, PointResult};
use hol_stack::TransportSpec;

use super::check::{self, MedianComparison};
use super::collapse::CollapseCounts;
use super::point_measurements::PointMeasurements;
use super::rank::ranks;
use super::runs::RunValues;
use crate::closed_form;
use crate::data::{Cell, Conditions};
use hol_lab::Metric;

/// The results of a point in both worlds, side by side.
#[derive(Debug, Clone)]
pub struct ComparedPoint {
    /// The point in the kernel world.
    pub point: Point,
    /// The transport in the model, with the options that it needs for the comparison.
    pub model_transport: TransportSpec,
    /// The kernel's measurements.
    pub kernel: PointMeasurements,
    /// The model's measurements.
    pub model: PointMeasurements,
    /// Comparison of the mean response times of both worlds' median runs; `None` if a world has none.
    pub mean: Option<MedianComparison>,
    /// Comparison of the 99th percentiles of both worlds' median runs; `None` if a world has no median run.
    pub p99: Option<MedianComparison>,
    /// Comparison of the throughputs of both worlds' median runs, in kbit/s; `None` if a world has no median run.
    pub throughput: Option<MedianComparison>,
    /// The number of collapsed runs in each world.
    pub collapses: CollapseCounts,
    /// The metric of the verdict: response time (mean, 99th percentile and collapses) or throughput.
    pub metric: Metric,
    /// The mean of the closed form in ms, if it applies.
    pub closed_form: Option<f64>,
    /// The Kolmogorov–Smirnov distance of the distributions.
    pub ks: Option<f64>,
    /// The Wasserstein-1 distance of the distributions, in ms.
    pub wasserstein_ms: Option<f64>,
    /// The repetition in which the kernel is furthest from the model's mean, to be examined first.
    pub furthest_repetition: u32,
    /// The share of the model's runs that each repetition of the kernel exceeds; empty if the model's runs hardly
    /// differ.
    pub ranks: Vec<f64>,
    /// The conditions of the network and the workload.
    pub conditions: Conditions,
}

impl ComparedPoint {
    /// Compares the runs of one point by their response times or by their throughput.
    pub fn of(kernel: &PointResult, model: &PointResult, metric: Metric) -> Self {
        let cell = Cell::from(kernel);
        let (point, model_transport) = (kernel.point.clone(), model.point.transport.clone());
        let furthest_repetition = furthest_repetition(kernel, model);
        let closed_form = closed_form::mean(&cell);
        let collapsed = |result: &PointResult| (result.collapsed_runs() as u64, result.runs.len() as u64);
        let collapses = CollapseCounts { kernel: collapsed(kernel), model: collapsed(model) };
        let [kernel, model] = [kernel, model].map(PointMeasurements::of);
        let shared = if point.competing_flow_count() == 0 {
            check::SINGLE_FLOW_TOLERANCE
        } else {
            check::COMPETING_FLOWS_TOLERANCE
        };
        let both = |of: fn(&PointMeasurements) -> &RunValues, tolerance| {
            MedianComparison::of(of(&kernel), of(&model), tolerance)
        };
        let mean = both(|world| &world.mean, check::MEAN_TOLERANCE);
        let throughput = both(|world| &world.throughput, shared);
        let among = |check: MedianComparison| match metric {
            Metric::Throughput => ranks(&kernel.throughput, &model.throughput, check.tolerance),
            _ => ranks(&kernel.mean, &model.mean, check.tolerance),
        };
        let ranked = if metric == Metric::Throughput { throughput } else { mean };
        Self {
            point,
            model_transport,
            mean,
            p99: both(|world| &world.p99, check::P99_TOLERANCE),
            throughput,
            collapses,
            ranks: ranked.map_or(Vec::new(), among),
            metric,
            closed_form,
            ks: kernel.latency.ks_distance(&model.latency),
            wasserstein_ms: kernel.latency.wasserstein_ms(&model.latency),
            furthest_repetition,
            kernel,
            model,
            conditions: cell.conditions,
        }
    }

    /// Returns whether every judged value agrees; a value that is missing in both worlds agrees, too.
    pub fn agrees(&self) -> bool {
        let Self { kernel, model, .. } = self;
        let same = |check: Option<MedianComparison>, of: fn(&PointMeasurements) -> &RunValues| {
            let neither = of(kernel).median.is_none() && of(model).median.is_none();
            check.map_or(neither, |check| check.agrees())
        };
        if self.metric == Metric::Throughput {
            return same(self.throughput, |world| &world.throughput);
        }
        same(self.mean, |world| &world.mean) && same(self.p99, |world| &world.p99) && self.collapses.agree()
    }

    /// Describes whether the worlds agree, and how meaningful that is.
    pub fn verdict(&self) -> &'static str {
        match (self.agrees(), self.is_imprecise()) {
            (true, false) => "agrees",
            (true, true) => "agrees, imprecise",
            (false, false) => "differs",
            (false, true) => "differs, imprecise",
        }
    }

    /// Returns whether the kernel's uncertainty exceeds the tolerance in one of the values.
    pub fn is_imprecise(&self) -> bool {
        self.checks().any(|check| check.is_imprecise())
    }

    /// Returns the largest judged difference as a multiple of its tolerance; infinite if a value is missing and the
    /// worlds do not agree.
    pub fn excess(&self) -> f64 {
        let known = self.checks().map(|check| check.excess()).fold(0.0, f64::max);
        if self.agrees() || self.checks().count() == self.judged_checks().len() {
            known
        } else {
            f64::INFINITY
        }
    }

    /// Returns the number of repetitions of the kernel until both uncertainties are within the tolerance, estimated from the present ones.
    pub fn repetitions_needed(&self) -> Option<u64> {
        self.checks().map(|check| check.repetitions_needed()).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn checks(&self) -> impl Iterator<Item = MedianComparison> {
        self.judged_checks().into_iter().flatten()
    }

    /// Returns the values that decide the verdict; `None` if a world has none.
    pub fn judged_checks(&self) -> Vec<Option<MedianComparison>> {
        if self.metric == Metric::Throughput { vec![self.throughput] } else { vec![self.mean, self.p99] }
    }
}

fn furthest_repetition(kernel: &PointResult, model: &PointResult) -> u32 {
    let centre = model.mean_ms().map_or(0.0, |mean| mean.mean);
    let runs = kernel.runs.iter().map(|run| {
        let distance = run.summary.latency.mean_ms().map_or(f64::INFINITY, |mean| (mean - centre).abs());
        (run.key.repetition, distance)
    });
    runs.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(repetition, _)| repetition)
}

#[cfg(test)]
mod tests {
    use super::super::test_points::compared;
    use super::*;

    #[test]
    fn shared_throughput_may_differ_by_a_tenth() {
        let text = "transports = ['tcp']\nmessages = 2\nrepetitions = 2\n";
        for (background, agrees) in [("", false), ("[[background]]\ntransport = 'tcp'", true)] {
            let mut compared = compared(&format!("{text}{background}"), &[21, 21], &[20, 20]);
            assert!(!compared.agrees(), "1 ms of 21 is too much for a mean");
            compared.metric = Metric::Throughput;
            assert_eq!(compared.agrees(), agrees, "5 % of a throughput: {:?}", compared.throughput);
        }
    }
}
