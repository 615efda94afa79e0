//! What one world measured at a point.

use hol_lab::{PointResult, RunResult};
use hol_measure::{Distribution, Interval};

use super::runs::Runs;

/// One world's numbers; times are in ms.
///
/// A quantile is that of each repetition: both worlds' repetitions are of one length, so that it is biased alike in both. A
/// repetition that had more failures than the quantile leaves out has none.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Repetitions.
    pub repetitions: usize,
    /// Messages that were to be sent.
    pub offered: u64,
    /// Messages that never completed.
    pub failed: u64,
    /// Runs that did not carry their load.
    pub collapsed: usize,
    /// Mean response time over all repetitions, with its 95 % interval; `None` if nothing completed.
    pub overall: Option<Interval>,
    /// Mean response time.
    pub mean: Runs,
    /// Median response time.
    pub median: Runs,
    /// What one message of a hundred exceeds.
    pub p99: Runs,
    /// What one message of a thousand exceeds.
    pub p999: Runs,
    /// User data from the first message sent to the last delivered, in kbit/s.
    pub throughput: Runs,
    /// Packets with data that were sent again, for a thousand messages.
    pub sent_again: f64,
    /// Response times of all repetitions together.
    pub latency: Distribution,
    /// Seconds of wall-clock time for all repetitions.
    pub wall_s: f64,
}

impl Measured {
    /// The numbers of a point.
    pub fn of(result: &PointResult) -> Self {
        let again: u64 = result.runs.iter().map(|run| sent_again(run)).sum();
        Self {
            repetitions: result.runs.len(),
            offered: result.offered(),
            failed: result.failed(),
            collapsed: result.collapsed(),
            overall: result.mean_ms(),
            mean: Runs::times(result, |run| run.summary.latency.mean_ms()),
            median: quantile(result, 0.5),
            p99: quantile(result, 0.99),
            p999: quantile(result, 0.999),
            throughput: Runs::throughputs(result),
            sent_again: again as f64 * 1000.0 / result.offered().max(1) as f64,
            latency: result.latency(),
            wall_s: result.wall_s(),
        }
    }
}

fn quantile(result: &PointResult, p: f64) -> Runs {
    Runs::times(result, |run| Some(run.summary.latency.quantile(p)?.as_millis_f64()))
}

/// Retransmissions of both ends, counted by the kernel or by the model's endpoints.
fn sent_again(run: &RunResult) -> u64 {
    let by_kernel = run.facts.as_ref().map(|facts| facts.retransmissions);
    let by_endpoints = run
        .counts
        .map(|counts| counts.fast_retransmissions + counts.timeout_retransmissions + counts.tail_loss_probes);
    by_kernel.or(by_endpoints).unwrap_or_default()
}
