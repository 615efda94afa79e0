//! Real time that only goes forwards, so that the end of a rule means the same after a restart.

use hol_base::Time;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since 1970: what the wall clock showed at the start, and what has passed since. It does not follow
/// when somebody sets the wall clock; lifetimes are spans, not dates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// What the wall clock showed when the monotonic one was at zero.
    epoch: u64,
}

impl Clock {
    pub fn start() -> Self {
        // Between two readings, for a reading takes time too.
        let before = nanos(ClockId::Monotonic);
        let wall = nanos(ClockId::Realtime);
        Self { epoch: wall.saturating_sub(before.midpoint(nanos(ClockId::Monotonic))) }
    }

    pub fn now(self) -> Time {
        Time::from_nanos(self.epoch + nanos(ClockId::Monotonic))
    }
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
impl Clock {
    /// Lets time pass.
    pub fn skip(&mut self, span: hol_base::Duration) {
        self.epoch += span.as_nanos();
    }
}
