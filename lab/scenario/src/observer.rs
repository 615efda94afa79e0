//! Who follows a run.

use hol_base::Duration;
use hol_measure::{Record, Summarizer};

use crate::Sample;

/// Takes what a run measures while it goes on, so that nobody has to hold it whole, and may end it.
pub trait Observer {
    /// A message of a flow is settled: 0 is measured, from 1 on those of the background. The records of a flow come in the
    /// order of its schedule, one for each message, also for those that never arrived.
    fn record(&mut self, flow: usize, record: &Record);

    /// How often it wants to see how the run stands, in the time of the world; `None`: never. Where watching takes time the
    /// digest is another one, as of [`World::trace`](crate::World::trace).
    fn interval(&self) -> Option<Duration> {
        None
    }

    /// What was seen at a multiple of that interval; ascending in time.
    fn sample(&mut self, sample: &Sample) {
        let _ = sample;
    }

    /// Whether the run is to go on. A world that can stop asks many times in a second.
    fn goes_on(&mut self) -> bool {
        true
    }
}

/// All that the records of the measured flow say, and nothing of those beside it.
impl Observer for Summarizer {
    fn record(&mut self, flow: usize, record: &Record) {
        if flow == 0 {
            self.add(record);
        }
    }
}
