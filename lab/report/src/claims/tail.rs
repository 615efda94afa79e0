//! The claim "A significant quantile of the transactions exceed the average delay by far".

use hol_base::Duration;
use hol_measure::{CONFIDENCE, Interval};
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};

/// The claim that a given share of the transactions takes longer than a multiple of the mean.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TailShare {
    pub(super) transport: String,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The multiple of the mean that some transactions have to exceed.
    factor: f64,
    /// The fraction of the transactions that has to take longer than `factor` times the mean.
    share: f64,
}

impl TailShare {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let measured: Vec<(&Cell, Interval)> = view
            .cells(&self.transport, &self.at)
            .into_iter()
            .filter_map(|cell| Some((cell, self.share_above(cell)?)))
            .collect();
        if measured.is_empty() {
            return Finding::no_points();
        }
        let far = measured.iter().filter(|(_, share)| share.low() >= self.share).count();
        let near = measured.iter().filter(|(_, share)| share.high() < self.share).count();
        let min = measured.iter().map(|(_, share)| share.mean).fold(f64::INFINITY, f64::min);
        let text = format!(
            "at least {:.1} % of the transactions take more than {} times the mean at {far} of {} points, fewer at {near} (minimum {:.2} %)",
            100.0 * self.share,
            self.factor,
            measured.len(),
            100.0 * min
        );
        let row = |(cell, share): &(&Cell, Interval)| {
            let [mean, p99] =
                [cell.latency.mean_ms(), cell.quantile_ms(0.99)].map(|ms| ms.unwrap_or(f64::NAN));
            let (place, share, around) =
                (cell.describe_conditions(), 100.0 * share.mean, 100.0 * share.half_width);
            format!(
                "{} at {place}: mean {mean:.1} ms, p99 {p99:.1} ms, {share:.2} ± {around:.2} % of the transactions take more than {} times the mean",
                cell.transport, self.factor
            )
        };
        let finding = match (near, far == measured.len()) {
            (0, true) => Finding::new(true, text),
            (0, false) => Finding::unknown(text),
            _ => Finding::new(false, text),
        };
        finding.with_rows(measured.iter().map(row).collect())
    }

    /// Returns the fraction of the transactions that take longer than `factor` times the mean; the interval is over the
    /// repetitions.
    fn share_above(&self, cell: &Cell) -> Option<Interval> {
        let limit = Duration::from_secs_f64(self.factor * cell.latency.mean_ms()? / 1000.0);
        let shares: Vec<f64> = cell.runs.iter().filter_map(|run| run.latency.share_above(limit)).collect();
        Interval::of(&shares, CONFIDENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell_with, dataset, view};

    #[test]
    fn only_a_long_tail_confirms_the_claim() {
        let check = TailShare { transport: "TCP".into(), at: Filter::default(), factor: 2.0, share: 0.01 };
        let with = |slow: usize| [vec![20.0; 100 - slow], vec![200.0; slow]].concat();
        let holds = |runs: &[Vec<f64>]| {
            check.evaluate(&view(&dataset(vec![cell_with("TCP", 1.0, 100.0, runs)]))).holds
        };
        assert_eq!(holds(&[with(5), with(6), with(5)]), Some(true));
        assert_eq!(holds(&[with(0), with(0), with(0)]), Some(false));
        assert_eq!(holds(&[with(0), with(6), with(0)]), None, "one repetition is no tail");
    }
}
