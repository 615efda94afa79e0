//! The points of one stack, selected by names of transports without the suffix of the stack.

use std::collections::BTreeMap;
use std::fmt;

use hol_measure::{Allowance, CONFIDENCE, Comparison, SignedRanks, compare_ratios, compare_with_allowances};
use serde::Deserialize;

use crate::data::{Cell, Dataset, Filter, last_key_part};
use crate::figures::StackView;
use hol_lab::Metric;

/// The points on which claims are evaluated. They belong to one stack (a named set of transport defaults).
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The points of all stacks.
    pub data: &'a Dataset,
    /// The stack whose points are evaluated.
    pub stack: &'a StackView,
}

impl<'a> View<'a> {
    /// Returns the points of `transport` (`SCTP-8`) on this stack.
    pub fn cells(&self, transport: &str, at: &Filter) -> Vec<&'a Cell> {
        let label = self.label(transport);
        self.data.cells.iter().filter(|cell| cell.transport == label && at.selects(cell)).collect()
    }

    /// Returns the points of several transports.
    pub fn cells_of(&self, transports: &[String], at: &Filter) -> Vec<&'a Cell> {
        transports.iter().flat_map(|transport| self.cells(transport, at)).collect()
    }

    /// Returns the point of `transport` on this stack with the same conditions as `cell`.
    pub fn with_same_conditions(&self, cell: &Cell, transport: &str) -> Option<&'a Cell> {
        self.data.with_same_conditions(cell, &self.label(transport))
    }

    /// Returns the point to which `cell` is compared.
    pub fn compared_cell(&self, cell: &Cell, reference: &ComparedWith) -> Option<&'a Cell> {
        let values = match reference {
            ComparedWith::Transport(transport) => return self.with_same_conditions(cell, transport),
            ComparedWith::Axes(values) => values,
        };
        // Comparing the axes suffices, because the other conditions follow from them.
        let mut axes = cell.conditions.axes.clone();
        for (key, value) in &mut axes {
            *value = values.get(key).unwrap_or(value).clone();
        }
        self.data.cells.iter().find(|other| {
            (&other.experiment, &other.transport) == (&cell.experiment, &cell.transport)
                && other.conditions.axes == axes
        })
    }

    fn label(&self, transport: &str) -> String {
        format!("{transport}{}", self.stack.suffix)
    }
}

/// What a point is compared with, everything else being equal: another transport (`"TCP"`), or other values
/// of swept keys (`{ "workload.interval" = "0ms" }`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ComparedWith {
    /// The label of a transport, without the suffix of the stack.
    Transport(String),
    /// Swept keys with the values to compare with, as written.
    Axes(BTreeMap<String, String>),
}

impl fmt::Display for ComparedWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(transport) => f.write_str(transport),
            Self::Axes(values) => {
                let named = values.iter().map(|(key, value)| format!("{} {value}", last_key_part(key)));
                f.write_str(&named.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Returns the difference of the means, `first` minus `second`, over repetitions with the same losses.
///
/// `None` if they have no common value, because one of them did not carry the load or delivered nothing. If a few runs
/// have no value, they count as the worst, and a sign test over all runs has to confirm the result of the others.
pub fn compare(metric: Metric, first: &Cell, second: &Cell, margin: f64) -> Option<Comparison> {
    paired(metric, first, second, |a, b, unseen| {
        Some(compare_with_allowances(a, b, unseen, margin, CONFIDENCE))
    })
}

/// Compares times as a ratio: the difference of their logarithms, with `margin` as a share. `None` also if a
/// time is 0.
pub fn compare_times(metric: Metric, first: &Cell, second: &Cell, margin: f64) -> Option<Comparison> {
    paired(metric, first, second, |a, b, unseen| compare_ratios(a, b, unseen, margin, CONFIDENCE))
}

fn paired(
    metric: Metric,
    first: &Cell,
    second: &Cell,
    compare: impl Fn(&[f64], &[f64], [Allowance; 2]) -> Option<Comparison>,
) -> Option<Comparison> {
    let unseen = [first, second].map(|cell| cell.timeout_allowance(metric));
    let pairs: Vec<_> = first.values_by_run(metric).into_iter().zip(second.values_by_run(metric)).collect();
    let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().filter_map(|(a, b)| a.zip(*b)).unzip();
    let means = (!first.is_empty()).then(|| compare(&first, &second, unseen))??;
    if first.len() == pairs.len() {
        return Some(means);
    }
    let ranked = |(a, b): (Option<f64>, Option<f64>)| {
        (a.unwrap_or(metric.worst_value()), b.unwrap_or(metric.worst_value()))
    };
    Some(means.confirmed_by(SignedRanks::of(pairs.into_iter().map(ranked)), CONFIDENCE))
}
