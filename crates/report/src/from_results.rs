//! From a result directory to the points that the report draws.

use hol_base::Ratio;
use hol_lab::{Point, PointResult, Results};
use hol_measure::SplitMean;
use hol_network::LossSpec;
use hol_workloads::Arrivals;

use crate::ceiling::ceiling_kbps;
use crate::data::{Cell, Conditions, Dataset, Flows};

impl From<&Results> for Dataset {
    /// Every point with at least one run.
    fn from(results: &Results) -> Self {
        Self {
            cells: results.points.iter().filter(|result| !result.runs.is_empty()).map(Cell::from).collect(),
        }
    }
}

impl From<&PointResult> for Cell {
    fn from(result: &PointResult) -> Self {
        let point = &result.point;
        Self {
            experiment: point.experiment.clone(),
            transport: point.label.clone(),
            spec: point.transport.to_string(),
            streams: point.transport.streams(),
            conditions: conditions(point),
            runs: result.runs.iter().map(|run| run.summary.clone()).collect(),
            latency: result.latency(),
            split: split(result),
            stopped: result.stopped().map(str::to_owned),
            flows: flows(result),
        }
    }
}

/// The flows as a whole; of transactions without a background they would say no more than the rate.
fn flows(result: &PointResult) -> Option<Flows> {
    let point = &result.point;
    let told = !point.workload.has_replies() || !point.background.is_empty();
    told.then(|| Flows {
        point: point.to_string(),
        throughputs: result.throughputs(),
        ceiling_kbps: ceiling_kbps(point),
        background_kbps: result.background_kbps(),
        fairnesses: result.fairnesses(),
        connects: result.connect_times_ms(),
    })
}

/// Where the time went, if the records tell when messages left and arrived.
fn split(result: &PointResult) -> Option<SplitMean> {
    result.runs.iter().all(|run| run.sees_passage).then(|| result.split_ms().unwrap_or_default())
}

fn conditions(point: &Point) -> Conditions {
    let workload = &point.workload;
    let loss = match &point.network.loss {
        LossSpec::Independent(ratio) => ratio.value(),
        LossSpec::Bursts(bursts) => stationary(bursts.good_to_bad, bursts.bad_to_good),
        LossSpec::Packets(_) => 0.0,
    };
    Conditions {
        // Percentages come back from their fraction with a few bits of noise.
        loss: (loss * 1e8).round() / 1e6,
        rate: workload.rate().map_or(0.0, |rate| rate.per_second()),
        delay_ms: point.network.delay.as_millis_f64(),
        workload: workload.to_string(),
        poisson: workload.arrivals() == Arrivals::Poisson,
        axes: point.axes.clone(),
    }
}

/// The share of the time that a line is bad.
fn stationary(good_to_bad: Ratio, bad_to_good: Ratio) -> f64 {
    let (to_bad, to_good) = (good_to_bad.value(), bad_to_good.value());
    if to_bad + to_good > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 }
}
