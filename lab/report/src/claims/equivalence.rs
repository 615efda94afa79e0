//! Claims of no difference: equivalence within a margin (two one-sided tests).

use hol_base::Duration;
use hol_measure::{CONFIDENCE, Comparison, Distribution};
use serde::Deserialize;

use super::view::compare;
use super::{ComparedWith, Finding, View};
use crate::data::{Cell, Filter};
use hol_lab::Metric;

/// The claim that each of `transports` has the same mean as another transport, or as itself at other axis values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EquivalentTransports {
    pub(super) transports: Vec<String>,
    #[serde(rename = "like")]
    pub(super) reference: ComparedWith,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The largest difference that counts as zero, in ms; the larger of the two margins applies.
    #[serde(default)]
    margin_ms: f64,
    /// The largest difference that counts as zero, as a fraction of the mean.
    #[serde(default)]
    margin_share: f64,
    /// The metric to which the claim refers.
    #[serde(default)]
    metric: Metric,
}

/// The claim that each of `transports` has the same results under two workloads.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EquivalentWorkloads {
    pub(super) transports: Vec<String>,
    workload: String,
    #[serde(rename = "like")]
    reference_workload: String,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The largest difference that counts as zero, in ms; the larger of the two margins applies.
    margin_ms: f64,
    /// The largest difference that counts as zero, as a fraction of the mean.
    margin_share: f64,
    /// The largest Kolmogorov–Smirnov distance of the two distributions; times within `margin_ms` count as equal.
    distance: f64,
}

impl EquivalentTransports {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let compared = view.cells_of(&self.transports, &self.at).into_iter().filter_map(|cell| {
            let reference = view.compared_cell(cell, &self.reference)?;
            let margin = self.margin_ms.max(self.margin_share * reference.mean_of(self.metric)?.mean);
            let comparison = compare(self.metric, cell, reference, margin)?;
            Some(ComparedPoint { cell, comparison, distance: 0.0, margin })
        });
        finding(self.metric, &compared.collect::<Vec<_>>(), f64::INFINITY)
    }
}

impl EquivalentWorkloads {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let at = Filter { workload: Some(self.workload.clone()), ..self.at.clone() };
        let reference = Filter { workload: Some(self.reference_workload.clone()), ..self.at.clone() };
        let compared = self.transports.iter().flat_map(|transport| {
            let others = view.cells(transport, &reference);
            view.cells(transport, &at).into_iter().filter_map(move |cell| {
                let other = others.iter().find(|other| same_path(cell, other))?;
                let margin = self.margin_ms.max(self.margin_share * other.mean()?.mean);
                let distance = distance(&cell.latency, &other.latency, self.margin_ms)?;
                Some(ComparedPoint {
                    cell,
                    comparison: compare(Metric::ResponseTime, cell, other, margin)?,
                    distance,
                    margin,
                })
            })
        });
        finding(Metric::ResponseTime, &compared.collect::<Vec<_>>(), self.distance)
    }
}

/// A point, and the difference that was measured there.
struct ComparedPoint<'a> {
    cell: &'a Cell,
    comparison: Comparison,
    distance: f64,
    margin: f64,
}

/// Returns the Kolmogorov–Smirnov distance after the best shift of at most `margin_ms`: if every message takes a round
/// trip, a single octet more would otherwise shift the whole distribution.
fn distance(one: &Distribution, other: &Distribution, margin_ms: f64) -> Option<f64> {
    const POINTS_PER_DECADE: u32 = 24;
    let margin = Duration::from_secs_f64(margin_ms / 1000.0);
    let mut largest: f64 = 0.0;
    for (a, b) in [(one, other), (other, one)] {
        for corner in b.ccdf(POINTS_PER_DECADE, CONFIDENCE) {
            largest = largest.max(a.share_above(corner.latency + margin)? - b.share_above(corner.latency)?);
        }
    }
    Some(largest)
}

fn same_path(one: &Cell, other: &Cell) -> bool {
    let (one, other) = (&one.conditions, &other.conditions);
    (one.loss, one.rate, one.delay_ms) == (other.loss, other.rate, other.delay_ms)
}

fn finding(metric: Metric, compared: &[ComparedPoint<'_>], distance: f64) -> Finding {
    if compared.is_empty() {
        return Finding::no_points();
    }
    let unit = metric.info().unit;
    let equivalent =
        |one: &&ComparedPoint<'_>| one.comparison.p_equivalent < 1.0 - CONFIDENCE && one.distance < distance;
    let same = compared.iter().filter(equivalent).count();
    let largest = compared.iter().map(|one| one.comparison.difference.mean.abs()).fold(0.0, f64::max);
    let mut text =
        format!("equivalent at {same} of {} points; largest difference {largest:.3} {unit}", compared.len());
    if distance.is_finite() {
        let largest_distance = compared.iter().map(|one| one.distance).fold(0.0, f64::max);
        text += &format!(", largest Kolmogorov–Smirnov distance {largest_distance:.4}");
    }
    let row = |one: &ComparedPoint<'_>| {
        let (cell, difference) = (one.cell, one.comparison.difference);
        format!(
            "{} at {}: difference {difference} {unit}, margin {:.2} {unit}",
            cell.transport,
            cell.describe_conditions(),
            one.margin
        )
    };
    let rows = compared.iter().map(row).collect();
    let used = compared.iter().map(|one| one.comparison.difference.n).sum();
    let all = compared.iter().map(|one| one.cell.runs.len() as u64).sum();
    let apart = |one: &ComparedPoint<'_>| {
        let difference = one.comparison.difference;
        difference.mean.abs() - difference.half_width > one.margin || one.distance >= distance
    };
    if same < compared.len() && !compared.iter().any(apart) {
        let text = format!("{text}; the confidence intervals are too wide for a verdict");
        return Finding::unknown(text).with_used_repetitions(used, all).with_rows(rows);
    }
    Finding::new(same == compared.len(), text).with_used_repetitions(used, all).with_rows(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    fn check() -> EquivalentTransports {
        let (transports, reference) = (vec!["SCTP-1".into()], ComparedWith::Transport("TCP".into()));
        EquivalentTransports {
            transports,
            reference,
            at: Filter::default(),
            margin_ms: 1.0,
            margin_share: 0.0,
            metric: Metric::default(),
        }
    }

    #[test]
    fn difference_within_the_margin_counts_as_equal() {
        let tcp = cell("TCP", 0.0, 100.0, &[20.01, 20.02, 20.01, 20.02]);
        let near = cell("SCTP-1", 0.0, 100.0, &[20.05, 20.06, 20.05, 20.07]);
        let far = cell("SCTP-1", 0.0, 100.0, &[22.05, 22.06, 22.05, 22.07]);
        let noisy = cell("SCTP-1", 0.0, 100.0, &[18.0, 22.0, 19.0, 21.5]);
        assert_eq!(check().evaluate(&view(&dataset(vec![tcp.clone(), noisy]))).holds, None);
        let data = dataset(vec![tcp.clone(), near]);
        assert_eq!(check().evaluate(&view(&data)).holds, Some(true));
        let data = dataset(vec![tcp, far]);
        assert_eq!(check().evaluate(&view(&data)).holds, Some(false));
    }

    #[test]
    fn two_workloads_are_compared_on_the_same_path() {
        let simco = cell("TCP", 1.0, 100.0, &[23.0, 23.1, 23.2, 22.9]);
        let mut echo = cell("TCP", 1.0, 100.0, &[23.1, 23.1, 23.2, 23.0]);
        echo.conditions.workload = "echo 64B".into();
        let check = EquivalentWorkloads {
            transports: vec!["TCP".into()],
            workload: "simco".into(),
            reference_workload: "echo 64B".into(),
            at: Filter::default(),
            margin_ms: 0.5,
            margin_share: 0.02,
            distance: 1.1,
        };
        assert_eq!(check.evaluate(&view(&dataset(vec![simco.clone(), echo.clone()]))).holds, Some(true));
        echo.conditions.loss = 2.0;
        assert_eq!(check.evaluate(&view(&dataset(vec![simco, echo]))).holds, None);
    }
}
