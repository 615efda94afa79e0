//! Writes preliminary results of points, for programs that watch a directory during a run.

use std::collections::BTreeSet;

use hol_lab::table::row_as_json;
use hol_lab::{EndedRun, LabError, PointId, Results, RunResults, Stopwatch, Store};

use crate::terminal::note;

/// Minimum interval between two reports of preliminary results, in s.
const MIN_INTERVAL: f64 = 1.0;
/// Minimum interval between two reports as a multiple of the time that it takes to write a report, so that at most 2 %
/// of the time is spent on reports.
const COST_FACTOR: f64 = 50.0;

/// Maximum number of points in one report; further points are in the next reports.
const MAX_POINTS: usize = 64;

/// The points whose results have changed since they were last reported.
pub struct PointReporter {
    stopwatch: Stopwatch,
    /// Earliest time of the next report, in s.
    next_report: f64,
    changed_points: BTreeSet<PointId>,
}

impl Default for PointReporter {
    fn default() -> Self {
        Self { stopwatch: Stopwatch::start(), next_report: MIN_INTERVAL, changed_points: BTreeSet::new() }
    }
}

impl PointReporter {
    /// Handles the end of a run. From time to time it updates the result tables with the runs in `finished`, and
    /// reports changed points on standard error, one JSON object per line.
    pub fn handle_run_end(
        &mut self,
        ended: Option<EndedRun<'_>>,
        store: &Store,
        finished: &RunResults,
    ) -> Result<(), LabError> {
        let now = self.stopwatch.seconds();
        if now >= self.next_report && !self.changed_points.is_empty() {
            report_changes(&mut self.changed_points, &store.write_tables(finished)?);
            let after = self.stopwatch.seconds();
            self.next_report = after + MIN_INTERVAL.max(COST_FACTOR * (after - now));
        }
        if let Some(Ok(run)) = ended {
            self.changed_points.insert(run.key.point);
        }
        Ok(())
    }
}

fn report_changes(changed: &mut BTreeSet<PointId>, results: &Results) {
    let reported: BTreeSet<PointId> = changed.iter().copied().take(MAX_POINTS).collect();
    for result in results.points.iter().filter(|result| reported.contains(&result.point.id)) {
        note!("{}", serde_json::json!({ "point": row_as_json(result) }));
    }
    changed.retain(|id| !reported.contains(id));
}
