//! When a run of several flows began.

use std::sync::{Arc, OnceLock};

use hol_base::{Duration, Time};

use crate::clock::{Clock, monotonic};

/// When the first flow of a run made its first attempt, once it has: what happens to the network at a time of the run counts
/// from there, as the flows' records do, however long it took to come to it.
#[derive(Debug, Clone, Default)]
pub struct Beginning(Arc<OnceLock<u64>>);

impl Beginning {
    /// The run has begun now.
    pub fn now() -> Self {
        Self(Arc::new(OnceLock::from(monotonic())))
    }

    /// A flow has begun that was due so long after the run.
    pub(crate) fn note(&self, clock: &Clock, due: Duration) {
        self.0.get_or_init(|| clock.origin().saturating_sub(due.as_nanos()));
    }

    /// Waits until it has; returns the time of the run, which is not zero if it was due before.
    pub fn wait(&self) -> Time {
        Time::from_nanos(monotonic() - self.0.wait())
    }

    /// The time of the run; `None` as long as nothing has begun.
    pub fn time(&self) -> Option<Time> {
        self.0.get().map(|began| Time::from_nanos(monotonic() - began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_when_the_first_of_its_flows_would_have_if_it_had_not_waited() {
        let beginning = Beginning::default();
        assert_eq!(beginning.time(), None);
        beginning.note(&Clock::start(), Duration::from_secs(7));
        let time = beginning.time().unwrap();
        assert!(time >= Time::from_millis(7_000));
        beginning.note(&Clock::start(), Duration::from_secs(700));
        assert!((time..Time::from_millis(600_000)).contains(&beginning.time().unwrap()));
    }
}
