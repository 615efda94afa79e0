//! Claims that a swept key matters more than the transport, by an analysis of variance.

use std::collections::BTreeMap;

use hol_measure::{Block, CONFIDENCE, VarianceAnalysis, VarianceComponent};
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};
use hol_lab::Metric;

/// The claim that a swept key explains more of the variance than the choice between `transports` does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactorEffect {
    pub(super) transports: Vec<String>,
    /// The swept key.
    factor: String,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The metric whose variance is analysed.
    #[serde(default)]
    metric: Metric,
}

impl FactorEffect {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let blocks: Vec<Block> =
            self.group_into_blocks(view).values().filter_map(|cells| self.block(view, cells)).collect();
        let Some(variance) = VarianceAnalysis::pooled(&blocks) else { return Finding::no_points() };
        let VarianceAnalysis { first: transport, second: factor, interaction, error } = variance;
        let describe_effect = |name: &str, part: VarianceComponent| {
            let (share, f, p) = (100.0 * variance.share(part), variance.f(part), variance.p(part));
            format!("{name}: {share:.1} % of the variance, F = {f:.1}, p = {p:.2e}")
        };
        let rows = vec![
            describe_effect(&self.factor, factor),
            describe_effect("transport", transport),
            describe_effect("interaction of both", interaction),
            format!("residual: {:.1} % of the variance", 100.0 * variance.share(error)),
        ];
        let text = format!(
            "{} explains {:.1} % of the variance of the {}, and the transport {:.1} %, in {} groups of points that differ \
             only in this key and the transport",
            self.factor,
            100.0 * variance.share(factor),
            self.metric.info().title,
            100.0 * variance.share(transport),
            blocks.len()
        );
        let significant = variance.p(factor) < 1.0 - CONFIDENCE;
        Finding::new(significant && factor.squares > transport.squares, text).with_rows(rows)
    }

    /// Groups the points of the first transport by all conditions except the swept key `factor`.
    fn group_into_blocks<'a>(&self, view: &View<'a>) -> BTreeMap<(String, Vec<String>), Vec<&'a Cell>> {
        let mut blocks: BTreeMap<_, Vec<&Cell>> = BTreeMap::new();
        for cell in self.transports.first().map(|first| view.cells(first, &self.at)).unwrap_or_default() {
            let others = cell.conditions.axes.iter().filter(|(key, _)| *key != self.factor);
            let others = others.map(|(_, value)| value.clone()).collect();
            blocks.entry((cell.experiment.clone(), others)).or_default().push(cell);
        }
        blocks
    }

    /// Returns the repetitions that have a value for every transport and level: a design with missing values would be
    /// unbalanced.
    fn block(&self, view: &View<'_>, levels: &[&Cell]) -> Option<Block> {
        let of = |transport: &String| -> Option<Vec<Vec<Option<f64>>>> {
            levels
                .iter()
                .map(|cell| Some(view.with_same_conditions(cell, transport)?.values_by_run(self.metric)))
                .collect()
        };
        let runs: Vec<Vec<Vec<Option<f64>>>> = self.transports.iter().map(of).collect::<Option<_>>()?;
        let count = runs.iter().flatten().map(Vec::len).min()?;
        let whole: Vec<usize> =
            (0..count).filter(|&at| runs.iter().flatten().all(|cell| cell[at].is_some())).collect();
        let kept = |cell: &Vec<Option<f64>>| whole.iter().filter_map(|&at| cell[at]).collect();
        (whole.len() > 1).then(|| runs.iter().map(|row| row.iter().map(kept).collect()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, flow, view};

    fn holds(means: [[f64; 2]; 2]) -> Option<bool> {
        let mut cells = Vec::new();
        for (transport, row) in ["TCP", "SCTP-1"].iter().zip(means) {
            for (sack, mean) in ["on", "off"].iter().zip(row) {
                let runs = [mean - 1.0, mean + 1.0, mean];
                cells.push(flow(transport, &[("background.sack", sack), ("queue", "6p")], &runs, 385.0));
            }
        }
        let check = FactorEffect {
            transports: vec!["TCP".into(), "SCTP-1".into()],
            factor: "background.sack".into(),
            at: Filter::default(),
            metric: Metric::Throughput,
        };
        check.evaluate(&view(&dataset(cells))).holds
    }

    #[test]
    fn the_larger_part_of_the_variance_matters_more() {
        assert_eq!(holds([[100.0, 150.0], [102.0, 152.0]]), Some(true));
        assert_eq!(holds([[100.0, 103.0], [150.0, 153.0]]), Some(false));
        assert_eq!(holds([[100.0, 100.0], [100.0, 100.0]]), Some(false), "chance alone is no factor");
    }

    #[test]
    fn single_transport_has_no_variance_to_compare() {
        let check = FactorEffect {
            transports: vec!["TCP".into(), "SCTP-1".into()],
            factor: "queue".into(),
            at: Filter::default(),
            metric: Metric::Throughput,
        };
        let data = dataset(vec![flow("TCP", &[("queue", "6p")], &[100.0, 101.0], 385.0)]);
        assert_eq!(check.evaluate(&view(&data)).holds, None);
    }
}
