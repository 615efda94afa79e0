//! Claims of order: along an axis, and between transports at quantiles.

use std::collections::BTreeMap;

use hol_measure::{CONFIDENCE, Direction, Trend, Verdict, adjust_by_holm, compare_paired};
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};
use crate::survey::AxisNumbers;
use hol_lab::Metric;

/// The claim that means only decrease, or only increase, along an axis, everything else being equal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonotoneMeans {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    along: OrderAxis,
    direction: Direction,
    /// The metric to which the claim refers.
    #[serde(default)]
    metric: Metric,
}

/// The axis along which means are ordered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
enum OrderAxis {
    Loss,
    Streams,
    /// A swept key, such as `network.delay`.
    Axis(String),
}

impl From<String> for OrderAxis {
    fn from(name: String) -> Self {
        match &*name {
            "loss" => Self::Loss,
            "streams" => Self::Streams,
            _ => Self::Axis(name),
        }
    }
}

/// The claim that, at each quantile, a transport is not faster than the next in the list, and the first is
/// slower than the last.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantileOrder {
    /// The transports from slow to fast.
    pub(super) transports: Vec<String>,
    quantiles: Vec<f64>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
}

impl OrderAxis {
    /// Returns the positions of the points on the axis; `None` if a point has no position.
    fn positions(&self, cells: &[&Cell]) -> Option<Vec<f64>> {
        match self {
            Self::Loss => Some(cells.iter().map(|cell| cell.conditions.loss).collect()),
            Self::Streams => Some(cells.iter().map(|cell| f64::from(cell.streams)).collect()),
            Self::Axis(key) => {
                let texts: Option<Vec<&str>> =
                    cells.iter().map(|cell| cell.conditions.axis_value(key)).collect();
                Some(AxisNumbers::read(&texts?)?.values)
            }
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Loss => "loss",
            Self::Streams => "streams",
            Self::Axis(key) => key.rsplit('.').next().unwrap_or(key),
        }
    }

    /// Returns a name for the curve to which a point belongs: the conditions that all points of the curve share.
    fn curve_name(&self, cell: &Cell) -> String {
        let conditions = &cell.conditions;
        match self {
            Self::Loss => format!("{}, {}, {}/s", cell.transport, cell.experiment, conditions.rate),
            Self::Streams => cell.describe_conditions(),
            Self::Axis(key) => {
                let others = conditions.axes.iter().filter(|(other, _)| other != key);
                let others: Vec<String> = others.map(|(key, value)| format!("{key}={value}")).collect();
                [&[cell.transport.clone(), cell.experiment.clone()], &others[..]].concat().join(", ")
            }
        }
    }
}

impl MonotoneMeans {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let mut curves: BTreeMap<String, Vec<&Cell>> = BTreeMap::new();
        for cell in view.cells_of(&self.transports, &self.at) {
            curves.entry(self.along.curve_name(cell)).or_default().push(cell);
        }
        let (mut steps, mut rows) = (0, Vec::new());
        for (name, mut cells) in curves {
            cells.retain(|cell| cell.mean_of(self.metric).is_some());
            let Some(values) = self.along.positions(&cells) else { continue };
            let mut curve: Vec<(f64, &Cell)> = values.into_iter().zip(cells).collect();
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
            let of = |cell: &Cell| cell.values_by_run(self.metric).into_iter().flatten().collect();
            let mut levels: Vec<Vec<f64>> = curve.iter().map(|(_, cell)| of(cell)).collect();
            if levels.len() < 2 {
                continue;
            }
            // An interrupted sweep may have measured more points of some transports.
            let all_have = levels.iter().map(Vec::len).min().unwrap_or(0);
            levels.iter_mut().for_each(|level| level.truncate(all_have));
            steps += levels.len() - 1;
            for step in Trend::of(&levels, self.direction, CONFIDENCE).violations {
                let at = |index: usize| {
                    let (value, cell) = curve[index];
                    let mean = cell.mean_of(self.metric).map_or(f64::NAN, |mean| mean.mean);
                    format!("{mean:.2} {} at {value}", self.metric.info().unit)
                };
                rows.push(format!("{name}: {}, then {}", at(step), at(step + 1)));
            }
        }
        if steps == 0 {
            return Finding::no_points();
        }
        let way = match self.direction {
            Direction::NonIncreasing => "falls",
            Direction::NonDecreasing => "rises",
        };
        let along = self.along.name();
        let text = format!(
            "{} of {steps} steps along {along} contradict the claim that the {} only {way}",
            rows.len(),
            self.metric.info().title
        );
        Finding::new(rows.is_empty(), text).with_rows(rows)
    }
}

/// The comparison, at one quantile, of two transports that are adjacent in the claimed order.
struct Step {
    row: String,
    p: f64,
    /// Whether the two quantiles are in the opposite of the claimed order.
    reversed: bool,
}

impl QuantileOrder {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let (Some(slowest), Some(fastest)) = (self.transports.first(), self.transports.last()) else {
            return Finding::no_points();
        };
        let (mut steps, mut spread) = (Vec::new(), Vec::new());
        for cell in view.cells(slowest, &self.at) {
            let present: Vec<&Cell> =
                self.transports.iter().filter_map(|label| view.with_same_conditions(cell, label)).collect();
            for &p in &self.quantiles {
                steps.extend(present.windows(2).filter_map(|pair| step(pair[0], pair[1], p)));
                spread.extend(view.with_same_conditions(cell, fastest).and_then(|fast| step(cell, fast, p)));
            }
        }
        if steps.is_empty() {
            return Finding::no_points();
        }
        let adjusted = adjust_by_holm(&steps.iter().map(|step| step.p).collect::<Vec<_>>());
        let reversed: Vec<String> = steps
            .iter()
            .zip(adjusted)
            .filter(|(step, p)| step.reversed && *p < 1.0 - CONFIDENCE)
            .map(|(step, _)| step.row.clone())
            .collect();
        let ends = spread.iter().filter(|step| !step.reversed && step.p < 1.0 - CONFIDENCE).count();
        let text = format!(
            "{} of {} comparisons of adjacent transports significantly contradict the order; {slowest} is significantly slower than {fastest} in {ends} of {} comparisons",
            reversed.len(),
            steps.len(),
            spread.len()
        );
        Finding::new(reversed.is_empty() && ends > 0, text).with_rows(reversed)
    }
}

fn step(slow: &Cell, fast: &Cell, p: f64) -> Option<Step> {
    let of = |cell: &Cell| -> Option<Vec<f64>> {
        cell.runs.iter().map(|run| run.latency.quantile(p).map(|q| q.as_millis_f64())).collect()
    };
    let (a, b) = (of(slow)?, of(fast)?);
    let pairs = a.len().min(b.len());
    let comparison = compare_paired(&a[..pairs], &b[..pairs], 0.0, CONFIDENCE);
    let row = format!(
        "p{}: {} − {} = {} ms at {}",
        100.0 * p,
        slow.transport,
        fast.transport,
        comparison.difference,
        slow.describe_conditions()
    );
    Some(Step { row, p: comparison.p, reversed: comparison.verdict == Verdict::Faster })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    fn along_streams(means: [f64; 3]) -> Option<bool> {
        let labels = ["SCTP-1", "SCTP-8", "SCTP-1024"];
        let cells = labels
            .iter()
            .zip(means)
            .map(|(label, mean)| cell(label, 1.0, 100.0, &[mean, mean + 0.1, mean - 0.1, mean + 0.05]));
        let mut cells: Vec<Cell> = cells.collect();
        let transports = labels.map(str::to_owned).to_vec();
        let (along, direction) = (OrderAxis::Streams, Direction::NonIncreasing);
        let (at, metric) = (Filter::default(), Metric::default());
        let check = MonotoneMeans { transports, at, along, direction, metric };
        let whole = check.evaluate(&view(&dataset(cells.clone())));
        // The last runs are missing, as in an interrupted sweep.
        cells[1].runs.truncate(2);
        assert!(check.evaluate(&view(&dataset(cells))) != Finding::no_points());
        whole.holds
    }

    #[test]
    fn more_streams_are_never_slower() {
        assert_eq!(along_streams([23.0, 21.0, 21.0]), Some(true));
        assert_eq!(along_streams([23.0, 21.0, 22.0]), Some(false));
    }

    fn quantiles(tcp: f64, sctp: f64) -> Option<bool> {
        let spread = |mean: f64| [mean, mean + 0.3, mean - 0.2, mean + 0.1];
        let data = dataset(vec![
            cell("TCP", 1.0, 100.0, &spread(tcp)),
            cell("SCTP-1024", 1.0, 100.0, &spread(sctp)),
        ]);
        let transports = vec!["TCP".into(), "SCTP-1024".into()];
        QuantileOrder { transports, quantiles: vec![0.9], at: Filter::default() }.evaluate(&view(&data)).holds
    }

    #[test]
    fn quantiles_follow_the_order_of_the_list() {
        assert_eq!(quantiles(40.0, 21.0), Some(true));
        assert_eq!(quantiles(21.0, 40.0), Some(false));
        assert_eq!(quantiles(21.0, 21.0), Some(false), "no difference is no order");
    }
}
