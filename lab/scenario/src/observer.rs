//! The interface to which a run passes its records and samples.

use hol_base::Duration;
use hol_measure::{Record, Summarizer};

use crate::Sample;

/// Receives the records and samples of a run while it continues, and can end it.
pub trait Observer {
    /// Called when a message of a flow is settled; flow 0 is measured, the others are background flows. The records of a flow are in the
    /// order of its schedule, one for each message, including those that never arrived.
    fn record(&mut self, flow: usize, record: &Record);

    /// Returns the interval of samples in the time of the world; `None` if there are none. If sampling takes
    /// time in a world, it changes the digest of the run, as [`World::trace`](crate::World::trace) does.
    fn interval(&self) -> Option<Duration> {
        None
    }

    /// Called with each sample, at multiples of the interval, in order of time.
    fn sample(&mut self, sample: &Sample) {
        let _ = sample;
    }

    /// Returns whether the run continues. A world that can be interrupted calls this many times per second.
    fn goes_on(&mut self) -> bool {
        true
    }
}

/// Summarises the records of the measured flow only.
impl Observer for Summarizer {
    fn record(&mut self, flow: usize, record: &Record) {
        if flow == 0 {
            self.add(record);
        }
    }
}
