//! The sampling times of connections: multiples of an interval of the run's time.

use std::io;

use hol_base::{Duration, Time};
use hol_scenario::Sample;

use crate::clock::{Alarm, Clock};

/// The alarm for the next sample of a sender's state, and the samples so far.
#[derive(Debug)]
pub(crate) struct SampleTimer {
    pub(crate) alarm: Alarm,
    interval: Duration,
    /// Time from the start of the run to the start of the flow, at which the flow's clock is zero.
    start: Duration,
    pub(crate) samples: Vec<Sample>,
}

impl SampleTimer {
    /// Creates the timer of a flow that starts `start` after the start of the run.
    pub(crate) fn new(interval: Duration, start: Duration) -> io::Result<Self> {
        Ok(Self { alarm: Alarm::new()?, interval, start, samples: Vec::new() })
    }

    /// Sets the alarm to the first multiple of the interval after `now`, unless the maximum number of samples has been
    /// reached.
    pub(crate) fn set(&mut self, clock: &Clock, now: Time) -> io::Result<()> {
        let next = if self.samples.len() as u64 > Sample::MAX_PER_RUN { Time::MAX } else { self.after(now) };
        self.alarm.set(clock, next)
    }

    /// Returns the first time after `now` at which the time of the run is a multiple of the interval, on the clock of
    /// the flow.
    fn after(&self, now: Time) -> Time {
        let (start, interval) = (self.start.as_nanos(), self.interval.as_nanos());
        Time::from_nanos(((now.as_nanos() + start) / interval + 1) * interval - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_multiples_of_the_interval_since_the_run_began() {
        let ms = Time::from_millis;
        let sample_timer =
            |start| SampleTimer::new(Duration::from_millis(10), Duration::from_millis(start)).unwrap();
        assert_eq!([0, 3, 10].map(|now| sample_timer(0).after(ms(now))), [10, 10, 20].map(ms));
        assert_eq!([0, 5, 6].map(|now| sample_timer(1004).after(ms(now))), [6, 6, 16].map(ms));
    }
}
