//! Claims about the measurement itself: its size, its rate, and when runs are aborted.

use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};
use crate::plot::number;

/// The claim of a minimum number of transactions per point.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinimumSamples {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    #[serde(alias = "least")]
    min: u64,
}

/// The claim that the load is carried up to a rate.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SustainedLoad {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The rate, in 1/s.
    rate: f64,
}

/// The claim that runs are aborted when they fall behind their schedule; other reasons are reported separately.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AbortedRuns {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
}

/// The claim that no measurement is aborted: at each point most runs finish.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompletedRuns {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
}

/// The claim that every transport has points.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
}

impl MinimumSamples {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells = view.cells_of(&self.transports, &self.at);
        let Some(fewest) = cells.iter().min_by_key(|cell| cell.latency.offered()) else {
            return Finding::no_points();
        };
        let count = fewest.latency.offered();
        let text = format!(
            "each of {} points has at least {} transactions ({} are needed)",
            cells.len(),
            number(count as f64),
            number(self.min as f64)
        );
        // A quick run has fewer transactions, which decides nothing about the paper.
        if count >= self.min { Finding::new(true, text) } else { Finding::unknown(text) }
    }
}

impl SustainedLoad {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let reach = |label: &String| {
            let cells = view.cells(label, &self.at);
            let carried =
                cells.iter().filter(|cell| cell.stop_reason.is_none()).map(|cell| cell.conditions.rate);
            (!cells.is_empty()).then(|| (label.clone(), carried.fold(0.0, f64::max)))
        };
        let reached: Vec<(String, f64)> = self.transports.iter().filter_map(reach).collect();
        if reached.is_empty() {
            return Finding::no_points();
        }
        let named: Vec<String> =
            reached.iter().map(|(label, rate)| format!("{label} {}/s", number(*rate))).collect();
        let holds = reached.iter().all(|(_, rate)| *rate >= self.rate);
        Finding::new(holds, format!("highest rate that was carried: {}", named.join(", ")))
    }
}

impl AbortedRuns {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells = view.cells_of(&self.transports, &self.at);
        let stopped: Vec<(&&Cell, &String)> =
            cells.iter().filter_map(|cell| Some((cell, cell.stop_reason.as_ref()?))).collect();
        if stopped.is_empty() {
            return Finding::unknown(format!(
                "no sender fell behind its schedule at any of {} points",
                cells.len()
            ));
        }
        let behind = stopped.iter().filter(|(_, why)| why.contains("behind")).count();
        let text = format!(
            "runs were aborted at {} of {} points, at {behind} because the sender fell behind its schedule",
            stopped.len(),
            cells.len()
        );
        let row = |(cell, why): &(&&Cell, &String)| {
            format!("{} at {}: {why}", cell.transport, cell.describe_conditions())
        };
        Finding::new(behind > 0, text).with_rows(stopped.iter().map(row).collect())
    }
}

impl CompletedRuns {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells = view.cells_of(&self.transports, &self.at);
        if cells.is_empty() {
            return Finding::no_points();
        }
        let aborted: Vec<&&Cell> = cells.iter().filter(|cell| !cell.is_mostly_completed()).collect();
        let text = format!("at {} of {} points most runs were aborted", aborted.len(), cells.len());
        let row = |cell: &&&Cell| {
            let (early, runs) = (cell.early_end_count(), cell.runs.len());
            format!(
                "{} at {}: {early} of {runs} runs were aborted",
                cell.transport,
                cell.describe_conditions()
            )
        };
        Finding::new(aborted.is_empty(), text).with_rows(aborted.iter().map(row).collect())
    }
}

impl Coverage {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let counts: Vec<(&String, usize)> =
            self.transports.iter().map(|label| (label, view.cells(label, &self.at).len())).collect();
        if counts.iter().all(|(_, count)| *count == 0) {
            return Finding::no_points();
        }
        let named: Vec<String> = counts.iter().map(|(label, count)| format!("{label} {count}")).collect();
        Finding::new(counts.iter().all(|(_, count)| *count > 0), format!("points: {}", named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    fn tcp() -> Vec<String> {
        vec!["TCP".into()]
    }

    #[test]
    fn a_point_completes_if_half_of_its_runs_do() {
        let holds = |early: [bool; 2]| {
            let mut cell = cell("TCP", 10.0, 100.0, &[20.0, 20.0]);
            cell.ended_early = early.to_vec();
            let check = CompletedRuns { transports: tcp(), at: Filter::default() };
            check.evaluate(&view(&dataset(vec![cell]))).holds
        };
        assert_eq!([holds([true, false]), holds([true, true])], [Some(true), Some(false)]);
    }

    #[test]
    fn transactions_are_counted() {
        let data = dataset(vec![cell("TCP", 1.0, 100.0, &[20.0, 20.0])]);
        let check = |min| MinimumSamples { transports: tcp(), at: Filter::default(), min };
        assert_eq!(check(2).evaluate(&view(&data)).holds, Some(true));
        assert_eq!(check(3).evaluate(&view(&data)).holds, None);
    }

    #[test]
    fn aborted_point_does_not_sustain_the_load() {
        let mut high = cell("TCP", 1.0, 1000.0, &[20.0, 20.0]);
        high.stop_reason = Some("behind schedule".into());
        let data = dataset(vec![cell("TCP", 1.0, 100.0, &[20.0, 20.0]), high]);
        let check = |rate| SustainedLoad { transports: tcp(), at: Filter::default(), rate };
        assert_eq!(check(100.0).evaluate(&view(&data)).holds, Some(true));
        assert_eq!(check(1000.0).evaluate(&view(&data)).holds, Some(false));
        let aborts = AbortedRuns { transports: tcp(), at: Filter::default() };
        assert_eq!(aborts.evaluate(&view(&data)).holds, Some(true));
    }

    #[test]
    fn coverage_names_the_transport_without_points() {
        let data = dataset(vec![cell("TCP", 1.0, 100.0, &[20.0])]);
        let check = |transports| Coverage { transports, at: Filter::default() }.evaluate(&view(&data)).holds;
        assert_eq!(check(tcp()), Some(true));
        assert_eq!(check(vec!["TCP".into(), "SCTP-1".into()]), Some(false));
    }
}
