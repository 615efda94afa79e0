//! Claims that repetitions vary more under some conditions than under others.

use hol_measure::Interval;
use serde::Deserialize;

use super::{ComparedWith, Finding, View};
use crate::data::{Cell, Filter};
use hol_lab::Metric;

/// The claim that the confidence intervals of `transports` are wider, as a share of the mean, than at other
/// axis values. Undecided if all repetitions at those values are equal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WiderIntervals {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    pub(super) at: Filter,
    #[serde(rename = "than")]
    pub(super) reference: ComparedWith,
    #[serde(default)]
    metric: Metric,
}

/// The relative rounding error of a mean of equal numbers.
const ROUNDING_ERROR: f64 = 1e-9;

impl WiderIntervals {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let known = |cell: &Cell| cell.mean_of(self.metric).filter(|mean| mean.half_width.is_finite());
        let pair = |cell: &&Cell| -> Option<(Interval, Interval, String)> {
            let (here, there) = (known(cell)?, known(view.compared_cell(cell, &self.reference)?)?);
            let (transport, place, reference) =
                (&cell.transport, cell.describe_conditions(), &self.reference);
            let unit = self.metric.info().unit;
            let row =
                format!("{transport} at {place}: {here} {unit}, compared with {there} {unit} at {reference}");
            Some((here, there, row))
        };
        let pairs: Vec<_> = view.cells_of(&self.transports, &self.at).iter().filter_map(pair).collect();
        if pairs.is_empty() {
            return Finding::no_points();
        }
        let alike = pairs.iter().filter(|(_, there, _)| there.relative_half_width() < ROUNDING_ERROR).count();
        let wider = pairs
            .iter()
            .filter(|(here, there, _)| here.relative_half_width() > there.relative_half_width())
            .count();
        let widest = pairs.iter().map(|(here, ..)| here.relative_half_width()).fold(0.0, f64::max);
        let text = format!(
            "at {wider} of {} points the confidence interval, in percent of the mean, is wider than with {}; the widest is ± {:.0} %; \
             at {alike} points all repetitions with {} have the same value, so any interval is wider",
            pairs.len(),
            self.reference,
            100.0 * widest,
            self.reference
        );
        let finding = match (wider == pairs.len(), alike) {
            (false, _) => Finding::new(false, text),
            (true, 0) => Finding::new(true, text),
            (true, _) => Finding::unknown(text),
        };
        finding.with_rows(pairs.into_iter().map(|(.., row)| row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, flow, view};

    #[test]
    fn repetitions_that_differ_more_have_a_wider_interval() {
        let check = WiderIntervals {
            transports: vec!["TCP".into()],
            at: Filter { axes: [("count".into(), vec!["2".into()])].into(), ..Filter::default() },
            reference: ComparedWith::Axes([("count".into(), "0".into())].into()),
            metric: Metric::Throughput,
        };
        let alone = flow("TCP", &[("count", "0")], &[200.0, 200.0, 200.1], 200.0);
        let alike = flow("TCP", &[("count", "0")], &[200.1, 200.1, 200.1, 200.1, 200.1], 200.0);
        let competing = flow("TCP", &[("count", "2")], &[100.0, 150.0, 120.0], 200.0);
        let steady = flow("TCP", &[("count", "2")], &[100.0, 100.0, 100.0], 200.0);
        let holds = |cells| check.evaluate(&view(&dataset(cells))).holds;
        assert_eq!(holds(vec![alone.clone(), competing.clone()]), Some(true));
        assert_eq!(holds(vec![alike, competing]), None, "any interval is wider than none");
        assert_eq!(holds(vec![alone, steady]), Some(false));
    }
}
