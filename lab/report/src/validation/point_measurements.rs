//! The measurements of one world at a point.

use hol_lab::{PointResult, RunResult};
use hol_measure::{Distribution, Interval};

use super::runs::RunValues;

/// The values of one world; times are in ms.
///
/// A quantile is computed per repetition. The repetitions of both worlds have the same length, so the quantile has the
/// same bias in both. A repetition with more failures than messages above the quantile has no value for it.
#[derive(Debug, Clone)]
pub struct PointMeasurements {
    /// The number of repetitions.
    pub repetitions: usize,
    /// The number of messages that were due.
    pub offered: u64,
    /// The number of messages that never completed.
    pub failed: u64,
    /// The number of runs that did not carry their load.
    pub collapsed: usize,
    /// The mean response time over all repetitions, with its 95 % interval; `None` if nothing completed.
    pub overall: Option<Interval>,
    /// Mean response time of each repetition, in ms.
    pub mean: RunValues,
    /// Median response time of each repetition, in ms.
    pub median: RunValues,
    /// 99th percentile of the response times of each repetition, in ms.
    pub p99: RunValues,
    /// 99.9th percentile of the response times of each repetition, in ms.
    pub p999: RunValues,
    /// The rate of user data from the first message sent to the last one delivered, in kbit/s.
    pub throughput: RunValues,
    /// Retransmitted packets with data per thousand messages.
    pub retransmissions: f64,
    /// The distribution of the response times of all repetitions.
    pub latency: Distribution,
    /// The wall-clock time of all repetitions, in seconds.
    pub wall_s: f64,
}

impl PointMeasurements {
    /// Collects the values of a point.
    pub fn of(result: &PointResult) -> Self {
        let again: u64 = result.runs.iter().map(|run| retransmissions(run)).sum();
        Self {
            repetitions: result.runs.len(),
            offered: result.offered(),
            failed: result.failed(),
            collapsed: result.collapsed_runs(),
            overall: result.mean_ms(),
            mean: RunValues::times(result, |run| run.summary.latency.mean_ms()),
            median: quantile(result, 0.5),
            p99: quantile(result, 0.99),
            p999: quantile(result, 0.999),
            throughput: RunValues::throughputs(result),
            retransmissions: again as f64 * 1000.0 / result.offered().max(1) as f64,
            latency: result.latency(),
            wall_s: result.wall_s(),
        }
    }
}

fn quantile(result: &PointResult, p: f64) -> RunValues {
    RunValues::times(result, |run| Some(run.summary.latency.quantile(p)?.as_millis_f64()))
}

/// Returns the number of retransmissions of both ends, counted by the kernel or by the model's endpoints.
fn retransmissions(run: &RunResult) -> u64 {
    let by_kernel = run.world_report.as_ref().map(|world_report| world_report.retransmissions);
    let by_endpoints = run
        .counts
        .map(|counts| counts.fast_retransmissions + counts.timeout_retransmissions + counts.tail_loss_probes);
    by_kernel.or(by_endpoints).unwrap_or_default()
}
