//! The start time of a run of several flows.

use std::sync::{Arc, OnceLock};

use hol_base::{Duration, Time};

use crate::clock::{Clock, monotonic};

/// The start of a run: the time of the first attempt to connect. It is unset before. Scheduled changes of the network
/// and the flows' records count from this time, however long the setup took.
#[derive(Debug, Clone, Default)]
pub struct RunStart(Arc<OnceLock<u64>>);

impl RunStart {
    /// Returns a start that is set to the current time.
    pub fn now() -> Self {
        Self(Arc::new(OnceLock::from(monotonic())))
    }

    /// Sets the start of the run to the current time, unless it is already set.
    pub(crate) fn begin(&self) {
        self.0.get_or_init(monotonic);
    }

    /// Sets the start of the run, unless it is already set, to the time `due` before the flow's `clock` was created.
    pub(crate) fn note(&self, clock: &Clock, due: Duration) {
        self.0.get_or_init(|| clock.origin().saturating_sub(due.as_nanos()));
    }

    /// Waits until the run has started. Returns the time since the start of the run.
    pub fn wait(&self) -> Time {
        Time::from_nanos(monotonic() - self.0.wait())
    }

    /// Returns the time since the start of the run; `None` if it has not started.
    pub fn elapsed(&self) -> Option<Time> {
        self.0.get().map(|began| Time::from_nanos(monotonic() - began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_run_is_the_earliest_that_a_flow_implies() {
        let beginning = RunStart::default();
        assert_eq!(beginning.elapsed(), None);
        beginning.note(&Clock::start(), Duration::from_secs(7));
        let time = beginning.elapsed().unwrap();
        assert!(time >= Time::from_millis(7_000));
        beginning.note(&Clock::start(), Duration::from_secs(700));
        assert!((time..Time::from_millis(600_000)).contains(&beginning.elapsed().unwrap()));
    }
}
