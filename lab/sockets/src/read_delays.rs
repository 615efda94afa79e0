//! How long messages waited in the sockets of an end before delivery.

use hol_base::{Duration, Time};
use hol_measure::Recorder;
use hol_scenario::ReadDelays;

use crate::wall_clock_offset::WallClockOffset;

/// Records how long messages wait in the sockets' receive buffers before they are read.
#[derive(Debug)]
pub(crate) struct ReadDelayRecorder {
    wall: WallClockOffset,
    /// The start of the flow's clock, in ns on the kernel's monotonic clock.
    origin: u64,
    recorder: Recorder,
}

impl ReadDelayRecorder {
    /// Creates the recorder of a flow whose clock started at `origin`, in ns on the kernel's monotonic clock.
    pub(crate) fn since(origin: u64) -> Self {
        Self { wall: WallClockOffset::read(), origin, recorder: Recorder::new() }
    }

    /// Records that a message is delivered at `now`, on the flow's clock, which the kernel received at `received_at`,
    /// in ns of the wall clock. A time outside the flow is ignored.
    pub(crate) fn note(&mut self, now: Time, received_at: u64) {
        let now = self.origin.saturating_add(now.as_nanos());
        let received_at = self
            .wall
            .to_monotonic(received_at)
            .filter(|received_at| (self.origin..=now).contains(received_at));
        received_at
            .into_iter()
            .for_each(|received_at| self.recorder.count_completed(Duration::from_nanos(now - received_at)));
    }

    /// Returns the distribution of the delays; `None` if there are none, or if the wall clock was set during the run.
    pub(crate) fn finish(self) -> Option<ReadDelays> {
        if self.wall.was_set(WallClockOffset::read()) {
            return None;
        }
        let waits = self.recorder.finish();
        let quantile = |share| waits.quantile(share).map(Duration::as_nanos);
        Some(ReadDelays {
            messages: waits.completed(),
            median: quantile(0.5)?,
            p999: quantile(0.999)?,
            max: waits.max()?.as_nanos(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::wall_clock;

    #[test]
    fn impossible_read_delays_are_ignored() {
        let origin = 1_000_000_000;
        assert_eq!(ReadDelayRecorder::since(origin).finish(), None, "nothing has come");
        let mut waits = ReadDelayRecorder::since(origin);
        let now = Time::from_millis(500);
        // The wall clock at the start.
        let some_time = wall_clock();
        let shown = some_time - waits.wall.to_monotonic(some_time).unwrap() + origin + now.as_nanos();
        for waited in [1_500_000, 2_500_000, 3_500_000, 501_000_000] {
            waits.note(now, shown - waited);
        }
        [shown + 1, 0, u64::MAX].into_iter().for_each(|received_at| waits.note(now, received_at));
        let summary = waits.finish().unwrap();
        let whole_ms = [summary.median, summary.p999, summary.max].map(|nanos| nanos / 1_000_000);
        assert_eq!((summary.messages, whole_ms), (3, [2, 3, 3]));
    }
}
