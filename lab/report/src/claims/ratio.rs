//! Claims of a ratio: the value of one transport is a multiple of another transport's value, or of its own value at
//! other axis values.

use hol_measure::{CONFIDENCE, Interval};
use serde::Deserialize;

use super::{ComparedWith, Finding, View};
use crate::data::{Cell, Filter};
use hol_lab::Metric;

/// The claim that at every point the value of each of `transports` is a multiple of the value of `reference`, within
/// the range `between`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricRatio {
    pub(super) transports: Vec<String>,
    #[serde(rename = "of")]
    pub(super) reference: ComparedWith,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The smallest and the largest ratio that agree with the paper.
    between: [f64; 2],
    /// The metric to which the claim refers.
    #[serde(default)]
    metric: Metric,
}

impl MetricRatio {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells = view.cells_of(&self.transports, &self.at);
        let factor = |cell: &Cell| factor(self.metric, cell, view.compared_cell(cell, &self.reference)?);
        let mut factors: Vec<(&Cell, Interval)> =
            cells.into_iter().filter_map(|cell| Some((cell, factor(cell)?))).collect();
        factors.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
        let (Some((_, max)), Some((_, min))) = (factors.first(), factors.last()) else {
            return Finding::no_points();
        };
        let [low, high] = self.between;
        let agree = factors.iter().filter(|(_, factor)| (low..=high).contains(&factor.mean)).count();
        let text = format!(
            "{}: {:.2} to {:.2} times the {} of {}; the expected {low} to {high} times at {agree} of {} points",
            self.transports.join(", "),
            min.mean,
            max.mean,
            self.metric.info().title,
            self.reference,
            factors.len()
        );
        let row = |(cell, factor): &(&Cell, Interval)| {
            format!("{} / {} = {factor} at {}", cell.transport, self.reference, cell.describe_conditions())
        };
        Finding::new(agree == factors.len(), text).with_rows(factors.iter().map(row).collect())
    }
}

/// Returns the mean ratio over repetitions with the same losses; `None` if no repetition has a value at both points.
fn factor(metric: Metric, cell: &Cell, of: &Cell) -> Option<Interval> {
    let pairs = cell.values_by_run(metric).into_iter().zip(of.values_by_run(metric));
    let factors: Vec<f64> = pairs.filter_map(|(one, other)| Some(one? / other?)).collect();
    Interval::of(&factors, CONFIDENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, flow, view};

    #[test]
    fn ratio_has_to_hold_at_every_point() {
        let check = MetricRatio {
            transports: vec!["SCTP-2".into()],
            reference: ComparedWith::Transport("SCTP-1".into()),
            at: Filter::default(),
            between: [1.9, 2.0],
            metric: Metric::Throughput,
        };
        let points = |loss, factor: f64| {
            let axes = [("loss", loss)];
            let of = flow("SCTP-1", &axes, &[500.0, 510.0], 1000.0);
            [flow("SCTP-2", &axes, &[500.0 * factor, 510.0 * factor], 1000.0), of]
        };
        let mut cells = points("0%", 1.95).to_vec();
        assert_eq!(check.evaluate(&view(&dataset(cells.clone()))).holds, Some(true));
        cells.extend(points("1%", 1.0));
        let finding = check.evaluate(&view(&dataset(cells)));
        assert_eq!(finding.holds, Some(false));
        assert!(finding.text.contains("SCTP-2: 1.00 to 1.95 times the throughput of SCTP-1;"), "{finding:?}");
        assert!(finding.text.ends_with("at 1 of 2 points"), "{finding:?}");
        assert!(finding.rows[0].ends_with("at exp1, loss 0%"), "the most first: {finding:?}");
        assert_eq!(check.evaluate(&view(&dataset(vec![]))).holds, None);
    }
}
