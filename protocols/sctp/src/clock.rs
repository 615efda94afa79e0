//! The clock that measures round trips and runs timers.

use hol_base::{Duration, Time};

/// The clock of an endpoint, which counts in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// Length of a tick in nanoseconds, at least 1.
    tick: u64,
    /// Whether timers expire at the slots of a hierarchical timer wheel, as in Linux.
    wheel: bool,
    /// The tick at which a timer last expired.
    last_expiry: Option<u64>,
}

impl Clock {
    pub(crate) fn new(tick: Duration, wheel: bool) -> Self {
        Self { tick: tick.as_nanos().max(1), wheel, last_expiry: None }
    }

    /// Records that a timer expires at `now`.
    pub(crate) fn on_expiry(&mut self, now: Time) {
        self.last_expiry = Some(self.tick_of(now));
    }

    /// Returns the number of the tick that contains `time`.
    pub(crate) fn tick_of(self, time: Time) -> u64 {
        time.as_nanos() / self.tick
    }

    /// Converts a duration to ticks, rounded up.
    pub(crate) fn ticks(self, span: Duration) -> u64 {
        span.as_nanos().div_ceil(self.tick)
    }

    /// Converts a number of ticks to a duration.
    pub(crate) fn span(self, ticks: u64) -> Duration {
        Duration::from_nanos(ticks.saturating_mul(self.tick))
    }

    /// Returns the time between the ticks of `earlier` and `later`.
    pub(crate) fn between(self, earlier: Time, later: Time) -> Duration {
        self.span(self.tick_of(later).saturating_sub(self.tick_of(earlier)))
    }

    /// Returns the start of the first tick that is more than `span` after that of `now`.
    pub(crate) fn first_after(self, now: Time, span: Duration) -> Time {
        let last = self.tick_of(now).saturating_add(self.ticks(span));
        Time::from_nanos(last.saturating_add(1).saturating_mul(self.tick))
    }

    /// Returns when a timer expires that is set at `now` for `delay`: always later than `now`.
    pub(crate) fn expiry(self, now: Time, delay: Duration) -> Time {
        let ticks = self.ticks(delay).max(1);
        let present = self.tick_of(now);
        let expires = present.saturating_add(ticks);
        // Once a timer has expired in the present tick, the wheel already stands at the next tick.
        let ahead = u64::from(self.last_expiry == Some(present));
        let fires = if self.wheel { wheel_edge(expires, ticks - ahead) } else { expires };
        Time::from_nanos(fires.saturating_mul(self.tick))
    }
}

/// Returns the tick at which a hierarchical timer wheel runs a timer that is set for tick `expires`, which is
/// `ticks` ticks from now. The wheel has 64 buckets per level, and each level is 8 times as coarse as the one
/// below. A timer runs at the end of its bucket, so it is never early.
fn wheel_edge(expires: u64, ticks: u64) -> u64 {
    const WHEEL_LEVELS: u32 = 8;
    let level = (0..WHEEL_LEVELS).find(|level| ticks < 63 << (3 * level)).unwrap_or(WHEEL_LEVELS);
    let shift = 3 * level;
    ((expires >> shift) + 1) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_clock_is_exact() {
        let clock = Clock::new(Duration::ZERO, false);
        let now = Time::from_nanos(12_345);
        assert_eq!(clock.expiry(now, Duration::from_nanos(7)), Time::from_nanos(12_352));
    }

    #[test]
    fn expiry_in_ticks_counts_from_the_current_tick() {
        let clock = Clock::new(Duration::from_millis(4), false);
        assert_eq!(clock.expiry(Time::from_millis(6), Duration::from_millis(9)), Time::from_millis(16));
    }

    #[test]
    fn timer_wheel_is_late_by_up_to_an_eighth() {
        let clock = Clock::new(Duration::from_millis(4), true);
        // 250 ticks belong to the second level: buckets of 8 ticks, 32 ms.
        let second = Duration::from_secs(1);
        assert_eq!(clock.expiry(Time::ZERO, second), Time::from_millis(1024));
        assert_eq!(clock.expiry(Time::from_millis(24), second), Time::from_millis(1056));
        // 50 ticks belong to the first level: one tick late.
        assert_eq!(clock.expiry(Time::ZERO, Duration::from_millis(200)), Time::from_millis(204));
    }

    #[test]
    fn timer_set_when_another_expires_counts_from_the_next_tick() {
        // kernel/time/timer.c __run_timers increments base->clk before it calls the handlers; calc_wheel_index.
        let mut clock = Clock::new(Duration::from_millis(4), true);
        clock.on_expiry(Time::from_millis(100));
        let delay = Duration::from_millis(252);
        assert_eq!(
            clock.expiry(Time::from_millis(100), delay),
            Time::from_millis(356),
            "62 ticks: the first level"
        );
        assert_eq!(
            clock.expiry(Time::from_millis(104), delay),
            Time::from_millis(384),
            "63 ticks: the second level"
        );
    }
}
