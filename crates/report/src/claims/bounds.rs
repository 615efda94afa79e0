//! Axis ranges as soft bounds: a curve that leaves the paper's axis cannot be compared with it.

use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};
use crate::metric::Metric;

/// Means lie within the paper's axis.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inside {
    transports: Vec<String>,
    #[serde(default)]
    at: Filter,
    /// The ends of the axis in ms (kbit/s).
    axis: [f64; 2],
    /// What is compared.
    #[serde(default)]
    metric: Metric,
}

impl Inside {
    /// Holds if every mean lies inside. One outside leaves it open: the paper's curve may have been cut
    /// at its axis, too.
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells = view.cells_of(&self.transports, &self.at);
        if cells.is_empty() {
            return Finding::no_points();
        }
        let (inside, outside): (Vec<&Cell>, Vec<&Cell>) = cells.iter().partition(|cell| self.takes(cell));
        let [low, high] = self.axis;
        let text =
            format!("{} of {} means within {low}–{high} {}", inside.len(), cells.len(), self.metric.unit());
        if outside.is_empty() {
            return Finding::new(true, text);
        }
        let row = |cell: &&Cell| match self.metric.mean(cell) {
            Some(mean) => {
                format!("{} at {}: {mean} {}, off the axis", cell.transport, cell.place(), self.metric.unit())
            }
            None => format!("{} at {}: the load was not carried", cell.transport, cell.place()),
        };
        Finding::unknown(text + "; the others are off the paper's axis and cannot be compared")
            .with_rows(outside.iter().map(row).collect())
    }

    fn takes(&self, cell: &Cell) -> bool {
        // A floor that equals the end of the axis lies on it: the RTT and a little serialization.
        let [low, high] = self.axis;
        self.metric.mean(cell).is_some_and(|mean| mean.high() >= low * 0.99 && mean.low() <= high * 1.01)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    #[test]
    fn a_mean_off_the_axis_leaves_the_claim_open() {
        let check = Inside {
            transports: vec!["TCP".into()],
            at: Filter::default(),
            axis: [20.0, 50.0],
            metric: Metric::default(),
        };
        let inside = cell("TCP", 1.0, 100.0, &[23.0, 24.0]);
        let outside = cell("TCP", 5.0, 100.0, &[80.0, 81.0]);
        assert_eq!(check.evaluate(&view(&dataset(vec![inside.clone()]))).holds, Some(true));
        let finding = check.evaluate(&view(&dataset(vec![inside, outside])));
        assert_eq!(finding.holds, None);
        assert!(finding.text.starts_with("1 of 2 means"), "{finding:?}");
    }
}
