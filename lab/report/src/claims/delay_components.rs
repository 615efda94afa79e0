//! Claims that the response time consists of several known parts.

use hol_measure::MeanDelayBreakdown;
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};

/// The claim that the response time minus round-trip time, recovery and resequencing is small.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayComponents {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The largest remainder for processing and queues, in ms.
    within_ms: f64,
}

impl DelayComponents {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let mut cells = view.cells_of(&self.transports, &self.at);
        cells.retain(|cell| cell.stop_reason.is_none());
        if cells.is_empty() {
            return Finding::no_points();
        }
        // The paper also names waiting at the sender (small congestion windows). If the send buffer is full, the
        // message waits before the transport accepts it, which is the component `slip`.
        let cells: Vec<(&Cell, MeanDelayBreakdown)> =
            cells.into_iter().filter_map(|cell| Some((cell, cell.delay_breakdown?))).collect();
        if cells.is_empty() {
            return Finding::unknown("delay components are measured in the model world only");
        }
        let left = |(cell, split): &(&Cell, MeanDelayBreakdown)| {
            split.network - cell.conditions.propagation_ms.unwrap_or_default()
        };
        let max = cells.iter().map(left).fold(0.0, f64::max);
        let text = format!(
            "at each of {} points, round-trip time, loss recovery, resequencing and the wait at the sender explain the mean delay except for at most {max:.3} ms",
            cells.len()
        );
        let row = |(cell, split): &(&Cell, MeanDelayBreakdown)| {
            format!(
                "{} at {}: network {:.2}, recovery {:.2}, head-of-line {:.2}, waiting at the sender {:.2}, behind schedule {:.2}, server {:.2} ms",
                cell.transport,
                cell.describe_conditions(),
                split.network,
                split.recovery,
                split.head_of_line,
                split.sender,
                split.slip,
                split.service
            )
        };
        Finding::new(max <= self.within_ms, text).with_rows(cells.iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    #[test]
    fn remainder_beyond_path_and_loss_refutes_the_claim() {
        let check = DelayComponents { transports: vec!["TCP".into()], at: Filter::default(), within_ms: 1.0 };
        let mut one = cell("TCP", 1.0, 100.0, &[23.0, 23.0]);
        one.delay_breakdown =
            Some(MeanDelayBreakdown { network: 20.03, recovery: 2.97, ..MeanDelayBreakdown::default() });
        assert_eq!(check.evaluate(&view(&dataset(vec![one.clone()]))).holds, Some(true));
        one.delay_breakdown = Some(MeanDelayBreakdown { network: 25.0, ..MeanDelayBreakdown::default() });
        assert_eq!(check.evaluate(&view(&dataset(vec![one.clone()]))).holds, Some(false));
        one.delay_breakdown = None;
        assert_eq!(check.evaluate(&view(&dataset(vec![one]))).holds, None);
    }
}
