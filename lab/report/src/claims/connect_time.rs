//! Claims that connecting takes too long.

use hol_lab::Metric;
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};

/// The claim that some runs of `transports` take longer than a limit to connect, or never connect.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateConnects {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The limit, in ms.
    within_ms: f64,
    /// Inverts the claim: it holds if no run is late.
    #[serde(rename = "none", default)]
    expects_none: bool,
}

impl LateConnects {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let shares: Vec<(usize, usize, &Cell)> = view
            .cells_of(&self.transports, &self.at)
            .into_iter()
            .filter_map(|cell| {
                let connects = cell.flows.as_ref().map(|_| cell.values_by_run(Metric::ConnectTime))?;
                let late = connects.iter().filter(|time| time.is_none_or(|ms| ms > self.within_ms));
                Some((late.count(), connects.len(), cell))
            })
            .collect();
        if shares.is_empty() {
            return Finding::no_points();
        }
        let (late, runs) = shares.iter().fold((0, 0), |(late, runs), (l, r, _)| (late + l, runs + r));
        let text = format!(
            "in {late} of {runs} runs ({:.1} %), no connection was established within {} s",
            100.0 * late as f64 / runs as f64,
            self.within_ms / 1000.0
        );
        let row = |(late, runs, cell): &(usize, usize, &Cell)| {
            format!(
                "{} at {}: the connection was established late in {late} of {runs} runs",
                cell.transport,
                cell.describe_conditions()
            )
        };
        Finding::new((late == 0) == self.expects_none, text).with_rows(shares.iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, flow, set, view};

    fn holds(expects_none: bool, last: Option<f64>) -> Option<bool> {
        let mut cell = flow("TCP", &[("count", "8")], &[100.0, 100.0], 385.0);
        set(&mut cell, Metric::ConnectTime, vec![Some(50.0), last]);
        let check = LateConnects {
            transports: vec!["TCP".into()],
            at: Filter::default(),
            within_ms: 10_000.0,
            expects_none,
        };
        check.evaluate(&view(&dataset(vec![cell]))).holds
    }

    #[test]
    fn a_run_that_never_connects_is_late() {
        assert_eq!(
            [holds(false, Some(60.0)), holds(false, Some(21_000.0)), holds(false, None)],
            [Some(false), Some(true), Some(true)]
        );
        assert_eq!([holds(true, Some(60.0)), holds(true, None)], [Some(true), Some(false)]);
    }
}
