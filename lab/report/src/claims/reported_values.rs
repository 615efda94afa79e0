//! Claims of single numbers: a report states the value of a metric at each point of an axis.

use std::collections::BTreeMap;

use hol_measure::ConfidenceInterval;
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};
use crate::plot::number;
use hol_lab::Metric;

/// The claim that a transport has the reported value at each selected point.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedValues {
    pub(super) transport: String,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The metric to which the claim refers.
    #[serde(default)]
    metric: Metric,
    /// The swept key along which values are reported.
    along: String,
    /// The reported values by value of the key `along`, in the unit of the metric. The entry with an empty name is for
    /// transports without this key.
    values: BTreeMap<String, Value>,
    /// Permitted deviation, as a fraction of the reported value.
    #[serde(rename = "within")]
    tolerance: f64,
}

/// The value that a report states.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Value {
    One(f64),
    /// The lowest and the highest value.
    Range([f64; 2]),
}

impl Value {
    const fn ends(self) -> [f64; 2] {
        match self {
            Self::One(value) => [value, value],
            Self::Range(ends) => ends,
        }
    }
}

impl ReportedValues {
    /// Evaluates the claim. It holds if the confidence interval of every mean lies within the tolerance around its
    /// reported value, and fails if the interval of one mean lies completely outside.
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells = view.cells(&self.transport, &self.at);
        if cells.is_empty() {
            return Finding::no_points();
        }
        let judged: Vec<(Option<bool>, String)> = cells.into_iter().map(|cell| self.judge(cell)).collect();
        let count = |wanted| judged.iter().filter(|(holds, _)| *holds == wanted).count();
        let [near, far] = [Some(true), Some(false)].map(count);
        let text = format!(
            "{}: of {} points, the mean is within {} % of the reported value at {near} and is not at {far}; {} are undecided",
            self.transport,
            judged.len(),
            100.0 * self.tolerance,
            judged.len() - near - far
        );
        let holds = if far > 0 { Some(false) } else { (near == judged.len()).then_some(true) };
        let rows = judged.into_iter().map(|(_, row)| row).collect();
        Finding { holds, ..Finding::unknown(text) }.with_rows(rows)
    }

    /// Returns whether the point has the reported value (`None`: undecided), and a line with both numbers.
    fn judge(&self, cell: &Cell) -> (Option<bool>, String) {
        let unit = self.metric.info().unit;
        let point = format!("{} at {}", self.transport, cell.describe_conditions());
        let reported = self.values.get(cell.conditions.axis_value(&self.along).unwrap_or_default());
        let Some(reported) = reported.map(|value| value.ends()) else {
            return (None, format!("{point}: no reported value"));
        };
        let [low, high] = reported;
        let stated = if low < high { format!("{} to {}", number(low), number(high)) } else { number(low) };
        let Some(mean) = cell.mean_with_bounds(self.metric) else {
            return (None, format!("{point}: {stated} {unit} reported, no mean measured"));
        };
        let nearest = mean.value.clamp(low, high);
        // Adding zero turns -0 into 0.
        let percent = (100.0 * (mean.value / nearest - 1.0)).round() + 0.0;
        let row = format!("{point}: {stated} {unit} reported, {mean} measured ({percent:+} %)");
        (self.is_near(mean, reported), row)
    }

    fn is_near(&self, mean: ConfidenceInterval, [low, high]: [f64; 2]) -> Option<bool> {
        let [low, high] = [low * (1.0 - self.tolerance), high * (1.0 + self.tolerance)];
        let is_beyond = mean.high < low || mean.low > high;
        let is_within = mean.low >= low && mean.high <= high;
        (is_beyond || is_within).then_some(is_within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, flow, view};

    fn check(values: &str) -> ReportedValues {
        let text = format!(
            "transport = \"TCP\"\nmetric = \"throughput\"\nalong = \"delay\"\nwithin = 0.25\nvalues = {values}"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn number_far_from_the_reported_value_refutes_the_claim() {
        let near = flow("TCP", &[("delay", "1ms")], &[900.0, 901.0, 902.0], 1000.0);
        let far = flow("TCP", &[("delay", "9ms")], &[60.0, 60.1, 60.2], 1000.0);
        let data = dataset(vec![near, far]);
        let of = |values| check(values).evaluate(&view(&data));
        assert_eq!(of(r#"{ "1ms" = 850, "9ms" = 55 }"#).holds, Some(true));
        assert_eq!(of(r#"{ "1ms" = 850, "9ms" = 40 }"#).holds, Some(false));
        assert_eq!(of(r#"{ "1ms" = [600, 750], "9ms" = [20, 50] }"#).holds, Some(true));
        let finding = of(r#"{ "1ms" = 850 }"#);
        assert_eq!(finding.holds, None, "a point without a reported number decides nothing");
        assert_eq!(finding.rows[1], "TCP at exp1, delay 9ms: no reported value");
        assert!(finding.rows[0].contains("850 kbit/s reported") && finding.rows[0].ends_with("(+6 %)"));
    }

    #[test]
    fn an_interval_that_crosses_the_limit_decides_nothing() {
        let wide = flow("TCP", &[("delay", "1ms")], &[700.0, 1100.0, 1400.0], 2000.0);
        assert_eq!(check(r#"{ "1ms" = 850 }"#).evaluate(&view(&dataset(vec![wide]))).holds, None);
    }
}
