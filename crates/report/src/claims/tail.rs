//! "A significant quantile of the transactions exceed the average delay by far."

use hol_base::Duration;
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};

/// A share of the transactions takes longer than a multiple of the mean.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    transport: String,
    #[serde(default)]
    at: Filter,
    /// The multiple of the mean.
    factor: f64,
    /// The share that has to exceed it.
    share: f64,
}

impl Tail {
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let measured: Vec<_> = view
            .cells(&self.transport, &self.at)
            .into_iter()
            .filter_map(|cell| Some((cell, self.share_above(cell)?, cell.quantile_ms(0.99)?)))
            .collect();
        if measured.is_empty() {
            return Finding::no_points();
        }
        let far = measured.iter().filter(|(_, share, _)| *share >= self.share).count();
        let least = measured.iter().map(|(_, share, _)| *share).fold(f64::INFINITY, f64::min);
        let text = format!(
            "more than {:.1} % of the transactions take over {} times the mean at {far} of {} points (least {:.2} %)",
            100.0 * self.share,
            self.factor,
            measured.len(),
            100.0 * least
        );
        let row = |(cell, share, p99): &(&Cell, f64, f64)| {
            let mean = cell.latency.mean_ms().unwrap_or(f64::NAN);
            let (place, share) = (cell.place(), 100.0 * share);
            format!("{} at {place}: mean {mean:.1} ms, p99 {p99:.1} ms, {share:.2} % beyond", cell.transport)
        };
        Finding::new(far == measured.len(), text).with_rows(measured.iter().map(row).collect())
    }

    fn share_above(&self, cell: &Cell) -> Option<f64> {
        let limit = self.factor * cell.latency.mean_ms()? / 1000.0;
        cell.latency.share_above(Duration::from_secs_f64(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell_with, dataset, view};

    #[test]
    fn a_long_tail_is_seen_and_a_short_one_is_not() {
        let check = Tail { transport: "TCP".into(), at: Filter::default(), factor: 2.0, share: 0.01 };
        let mut long = vec![20.0; 95];
        long.extend([200.0; 5]);
        let holds = |latencies: &[f64]| {
            check.evaluate(&view(&dataset(vec![cell_with("TCP", 1.0, 100.0, latencies)]))).holds
        };
        assert_eq!(holds(&long), Some(true));
        assert_eq!(holds(&[20.0; 100]), Some(false));
    }
}
