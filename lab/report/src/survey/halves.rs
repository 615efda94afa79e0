//! Compares the halves of runs that have no steady state.

use hol_measure::{Allowance, CONFIDENCE, Comparison, Summary, compare_ratios};

use crate::data::Cell;

/// Compares response times if one transport has no steady state: a winner has to win in the first half of each run
/// and in the second.
pub(super) fn compare_halves(challenger: &Cell, reference: &Cell, margin: f64) -> Option<Comparison> {
    let of = |value: fn(&Summary) -> Option<f64>| {
        let pairs = challenger.of_completed_runs(value).into_iter().zip(reference.of_completed_runs(value));
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.filter_map(|(a, b)| a.zip(b)).unzip();
        compare_ratios(&a, &b, [Allowance::default(); 2], margin, CONFIDENCE)
    };
    let whole = of(|run| run.latency.mean_ms())?;
    let halves = [of(|run| Some(run.halves.means_ms()?.0))?, of(|run| Some(run.halves.means_ms()?.1))?];
    let sign = whole.difference.mean.signum();
    let p = |half: &Comparison| {
        if half.difference.mean.signum() == sign { half.p.max(half.p_beyond) } else { 1.0 }
    };
    let p = halves.iter().map(p).fold(whole.p, f64::max);
    Some(Comparison { p, p_beyond: p, p_equivalent: 1.0, ranks: None, ..whole })
}
