//! Claims that follow from the axes of the paper's figures: a curve cannot contain a mean outside of its
//! axis.

use hol_measure::ConfidenceInterval;
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};
use hol_lab::Metric;

/// The claim that every mean lies within the paper's axis, with its whole confidence interval.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithinAxis {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The ends of the axis, in the unit of the metric (ms or kbit/s).
    axis: [f64; 2],
    /// The metric to which the claim refers.
    #[serde(default)]
    metric: Metric,
}

/// The position of a mean and its interval relative to the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AxisPosition {
    Inside,
    /// The interval crosses an end of the axis, or there is no mean because there is no steady state.
    Open,
    Outside,
}

impl WithinAxis {
    /// Evaluates the claim. It holds if every interval lies inside, fails if an interval lies outside, and is
    /// undecided if longer runs would have another mean. A point that does not carry its load has no mean, as
    /// in the paper, whose curve ends there.
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells = view.cells_of(&self.transports, &self.at);
        let placed: Vec<(&Cell, Option<ConfidenceInterval>, AxisPosition)> = cells
            .iter()
            .filter_map(|cell| match cell.mean_with_bounds(self.metric) {
                Some(mean) => Some((*cell, Some(mean), self.position(mean))),
                None => (!cell.is_steady).then_some((*cell, None, AxisPosition::Open)),
            })
            .collect();
        if placed.is_empty() {
            return Finding::no_points();
        }
        let count = |wanted| placed.iter().filter(|(.., place)| *place == wanted).count();
        let ([low, high], unit) = (self.axis, self.metric.info().unit);
        let not_carried = match cells.len() - placed.len() {
            0 => String::new(),
            n => format!("; at {n} more points the transport did not carry the load"),
        };
        let text = format!(
            "the confidence intervals of {} of {} means are within the axis ({low} to {high} {unit}), those of {} are outside, and {} are undecided{not_carried}",
            count(AxisPosition::Inside),
            placed.len(),
            count(AxisPosition::Outside),
            count(AxisPosition::Open),
        );
        let row = |(cell, mean, place): &(&Cell, Option<ConfidenceInterval>, AxisPosition)| {
            let what = match (mean, place) {
                (None, _) => "no steady state".to_owned(),
                (Some(mean), AxisPosition::Outside) => format!("{mean} {unit}, outside the axis"),
                (Some(mean), _) => format!("{mean} {unit}, whose interval crosses an end of the axis"),
            };
            format!("{} at {}: {what}", cell.transport, cell.describe_conditions())
        };
        let finding = match (count(AxisPosition::Outside), count(AxisPosition::Open)) {
            (0, 0) => Finding::new(true, text),
            (0, _) => Finding::unknown(text),
            _ => Finding::new(false, text),
        };
        finding
            .with_rows(placed.iter().filter(|(.., place)| *place != AxisPosition::Inside).map(row).collect())
    }

    fn position(&self, mean: ConfidenceInterval) -> AxisPosition {
        // The ends are extended by 1 %: a mean that the paper shows on the end, such as the round-trip time, also
        // contains a little serialisation delay.
        let [low, high] = [self.axis[0] * 0.99, self.axis[1] * 1.01];
        if mean.low >= low && mean.high <= high {
            AxisPosition::Inside
        } else if mean.high < low || mean.low > high {
            AxisPosition::Outside
        } else {
            AxisPosition::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    #[test]
    fn mean_is_inside_the_axis_outside_or_undecided() {
        let check = WithinAxis {
            transports: vec!["TCP".into()],
            at: Filter::default(),
            axis: [20.0, 50.0],
            metric: Metric::default(),
        };
        let inside = cell("TCP", 1.0, 100.0, &[23.0, 23.2, 23.1]);
        let outside = cell("TCP", 5.0, 100.0, &[80.0, 80.5, 81.0]);
        // The interval 13,805 ± 16,540 ms lies neither within 20 to 50 ms nor entirely outside.
        let wide = cell("TCP", 10.0, 100.0, &[21.0, 22.0, 41_000.0]);
        let of = |cells: &[&Cell]| {
            check.evaluate(&view(&dataset(cells.iter().map(|cell| (*cell).clone()).collect())))
        };
        assert_eq!(of(&[&inside]).holds, Some(true));
        assert_eq!(of(&[&inside, &wide]).holds, None);
        let finding = of(&[&inside, &outside, &wide]);
        assert_eq!(finding.holds, Some(false));
        assert!(finding.text.starts_with("the confidence intervals of 1 of 3 means"), "{finding:?}");
        assert!(finding.text.contains("those of 1 are outside, and 1 are undecided"), "{finding:?}");
        let mut stopped = outside;
        (stopped.stop_reason, stopped.ended_early) = (Some("behind schedule".into()), vec![true; 3]);
        let mut unsteady = wide;
        unsteady.is_steady = false;
        let finding = of(&[&inside, &stopped, &unsteady]);
        assert!(
            finding.text.ends_with("; at 1 more points the transport did not carry the load"),
            "{finding:?}"
        );
        assert_eq!((finding.holds, finding.rows.len()), (None, 1));
    }
}
