//! Compares quantiles of two transports, where the mean hides a difference.

use hol_measure::{Allowance, CONFIDENCE, Verdict, compare_ratios};

use super::transport_comparison::NEGLIGIBLE;
use crate::data::Cell;

/// Minimum number of messages in a repetition for an estimate of the 99th percentile.
const ENOUGH_FOR_TAIL: u64 = 1000;

/// How a quantile of the challenger's latencies compares with that of the reference's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct QuantileComparison {
    pub(super) verdict: Verdict,
    /// Difference in percent of the reference.
    pub(super) percent: f64,
}

/// Compares the quantile `p` (0 to 1) of paired repetitions; `None` if no pair has one.
pub(super) fn compare_quantile(challenger: &Cell, reference: &Cell, p: f64) -> Option<QuantileComparison> {
    let of = |cell: &Cell| cell.of_completed_runs(|run| run.latency.quantile(p).map(|at| at.as_millis_f64()));
    let pairs = of(challenger).into_iter().zip(of(reference));
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.filter_map(|(a, b)| a.zip(b)).unzip();
    let ratios = compare_ratios(&a, &b, [Allowance::default(); 2], NEGLIGIBLE, CONFIDENCE)?;
    Some(QuantileComparison {
        verdict: ratios.verdict,
        percent: 100.0 * ratios.difference.mean.exp_m1().abs(),
    })
}

/// Compares the 99th percentiles, if each repetition has enough messages.
pub(super) fn compare_tails(challenger: &Cell, reference: &Cell) -> Option<QuantileComparison> {
    let has_tail = |cell: &Cell| cell.runs.iter().all(|run| run.latency.completed() >= ENOUGH_FOR_TAIL);
    (has_tail(challenger) && has_tail(reference))
        .then(|| compare_quantile(challenger, reference, 0.99))
        .flatten()
}
