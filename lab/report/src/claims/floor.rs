//! Claims that a response without loss takes a round trip and hardly more.

use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};

/// The claim that every mean is the round-trip time plus a small amount.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeansNearRtt {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The largest permitted excess of a mean over the round-trip time, in ms.
    within_ms: f64,
}

impl MeansNearRtt {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let excess = |cell: &Cell| Some(cell.mean()?.mean - cell.conditions.rtt_ms());
        let cells = view.cells_of(&self.transports, &self.at);
        let excesses: Option<Vec<f64>> = cells.iter().map(|cell| excess(cell)).collect();
        let Some(excesses) = excesses else {
            let all_carried = cells.iter().all(|cell| cell.mean().is_some() || !cell.is_steady);
            return match all_carried {
                true => Finding::unknown("at least one point has no steady state"),
                false => Finding::new(false, "the transport did not carry the load at one point or more"),
            };
        };
        if excesses.is_empty() {
            return Finding::no_points();
        }
        let (min, max) = excesses
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), e| (min.min(*e), max.max(*e)));
        let holds = min >= 0.0 && max <= self.within_ms;
        let text = format!(
            "at {} points, the mean response time minus the RTT is {min:.3} to {max:.3} ms (expected: 0 to {} ms)",
            cells.len(),
            self.within_ms
        );
        let row = |(cell, excess): (&&Cell, &f64)| {
            format!("{} at {}: RTT + {excess:.3} ms", cell.transport, cell.describe_conditions())
        };
        Finding::new(holds, text).with_rows(cells.iter().zip(&excesses).map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    #[test]
    fn the_floor_is_the_round_trip_time() {
        let check = MeansNearRtt { transports: vec!["TCP".into()], at: Filter::default(), within_ms: 1.0 };
        let holds =
            |means: &[f64]| check.evaluate(&view(&dataset(vec![cell("TCP", 0.0, 100.0, means)]))).holds;
        assert_eq!(holds(&[20.02, 20.02]), Some(true));
        assert_eq!(holds(&[21.5, 21.6]), Some(false));
        assert_eq!(holds(&[19.5, 19.6]), Some(false), "faster than light");
    }
}
