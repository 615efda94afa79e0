//! Writes preliminary results of points, for programs that watch a directory during a run.

use std::collections::BTreeSet;

use hol_lab::table::object;
use hol_lab::{Ended, LabError, PointId, Results, RunResults, Stopwatch, Store};

use crate::terminal::note;

/// Seconds between two looks, at least; and so many times what a look costs, so that looking takes two percent of the time.
const LEAST: f64 = 1.0;
const TIMES: f64 = 50.0;

/// Points in a look; others wait for the next.
const MOST: usize = 64;

/// The points whose results have changed since they were last reported.
pub struct Points {
    watch: Stopwatch,
    next: f64,
    changed: BTreeSet<PointId>,
}

impl Default for Points {
    fn default() -> Self {
        Self { watch: Stopwatch::start(), next: LEAST, changed: BTreeSet::new() }
    }
}

impl Points {
    /// Notes a run that has ended. From time to time the tables of what was `finished` before are written,
    /// and points that have changed are reported on standard error, one JSON object per line.
    pub fn show(
        &mut self,
        ended: Option<Ended<'_>>,
        store: &Store,
        finished: &RunResults,
    ) -> Result<(), LabError> {
        let now = self.watch.seconds();
        if now >= self.next && !self.changed.is_empty() {
            tell(&mut self.changed, &store.write_tables(finished)?);
            let after = self.watch.seconds();
            self.next = after + LEAST.max(TIMES * (after - now));
        }
        if let Some(Ok(run)) = ended {
            self.changed.insert(run.key.point);
        }
        Ok(())
    }
}

fn tell(changed: &mut BTreeSet<PointId>, results: &Results) {
    let told: BTreeSet<PointId> = changed.iter().copied().take(MOST).collect();
    for result in results.points.iter().filter(|result| told.contains(&result.point.id)) {
        note!("{}", serde_json::json!({ "point": object(result) }));
    }
    changed.retain(|id| !told.contains(id));
}
