//! The kernel's monotonic clock as the time of a run, and an alarm on it.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{fs, io};

use hol_base::{Duration, Time};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_getres,
    clock_gettime, timerfd_create, timerfd_settime,
};

/// A clock that counts from its creation.
#[derive(Debug)]
pub(crate) struct Clock {
    start: u64,
    /// The reading at the last wake-up, if the clock stands still until the next wait: reading it again would be a
    /// system call that takes the host longer than handling an event. `None` for other clocks.
    stopped_at: Option<Cell<u64>>,
}

/// The file with the name of the kernel's clock source, and the name of a clock source that stops during computation:
/// User-Mode Linux with time-travel=inf-cpu.
const CLOCK_SOURCE_FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const STANDING_CLOCK_SOURCE: &str = "time-travel-clock";

/// An alarm that becomes readable at its set time, with the precision of the kernel's high-resolution timers. The
/// timeouts of `epoll_wait` and `poll` would have timer slack.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    /// When the alarm expires; [`Time::MAX`] if it is not set.
    set: Time,
}

impl Clock {
    const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

    /// Starts the clock of a run at the present time.
    pub(crate) fn start() -> Self {
        let is_standing = clocksource() == STANDING_CLOCK_SOURCE;
        let start = monotonic();
        Self { start, stopped_at: is_standing.then(|| Cell::new(start)) }
    }

    /// Returns when the clock was created, in ns on the kernel's monotonic clock.
    pub(crate) fn origin(&self) -> u64 {
        self.start
    }

    /// Returns the time since the clock's start: now, or at the last wake-up if the clock stands still until the next
    /// wait.
    pub(crate) fn now(&self) -> Time {
        let now = self.stopped_at.as_ref().map_or_else(monotonic, Cell::get);
        Time::from_nanos(now - self.start)
    }

    /// Records a wake-up; to be called after each wait.
    pub(crate) fn wake(&self) {
        self.stopped_at.iter().for_each(|stopped_at| stopped_at.set(monotonic()));
    }

    /// Returns the wall-clock time when the clock was created, in ns since 1970.
    pub(crate) fn epoch(&self) -> u64 {
        epoch_of(self.start)
    }

    /// Converts a time to the kernel's clock.
    fn to_timespec(&self, at: Time) -> Timespec {
        let nanos = self.start.saturating_add(at.as_nanos());
        Timespec {
            tv_sec: (nanos / Self::NANOSECONDS_PER_SECOND) as i64,
            tv_nsec: (nanos % Self::NANOSECONDS_PER_SECOND) as i64,
        }
    }
}

/// Returns the kernel's name of the clock source; empty if there is none.
pub fn clocksource() -> String {
    fs::read_to_string(CLOCK_SOURCE_FILE).unwrap_or_default().trim().to_owned()
}

/// Returns the tick of the kernel's timer wheel, which is the resolution of its coarse clock. clock_getres(2)
pub(crate) fn jiffy() -> Duration {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    Duration::from_nanos(tick.tv_sec as u64 * Clock::NANOSECONDS_PER_SECOND + tick.tv_nsec as u64)
}

/// Returns the wall-clock time at `origin` of the monotonic clock, in ns since 1970.
pub(crate) fn epoch_of(origin: u64) -> u64 {
    // The wall clock is read between two readings, since a reading takes time too.
    let before = monotonic();
    let wall = wall_clock();
    let now = before.midpoint(monotonic());
    wall.saturating_sub(now.saturating_sub(origin))
}

/// Returns the kernel's monotonic clock, in ns.
pub fn monotonic() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Returns the kernel's wall clock, in ns since 1970.
pub(crate) fn wall_clock() -> u64 {
    nanos(ClockId::Realtime)
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * Clock::NANOSECONDS_PER_SECOND + now.tv_nsec as u64
}

impl Alarm {
    /// Creates an alarm that is not set.
    pub(crate) fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, set: Time::MAX })
    }

    /// Sets the alarm, and replaces a previous one; [`Time::MAX`] means never.
    pub(crate) fn set(&mut self, clock: &Clock, at: Time) -> io::Result<()> {
        if at == self.set {
            return Ok(());
        }
        self.set = at;
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = if at == Time::MAX { never } else { clock.to_timespec(at) };
        let timer = Itimerspec { it_interval: never, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &timer)?;
        Ok(())
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopping_clock_is_read_only_at_wake_ups() {
        let stopped_at = Clock { start: 0, stopped_at: Some(Cell::new(7)) };
        assert_eq!((stopped_at.now(), stopped_at.now()), (Time::from_nanos(7), Time::from_nanos(7)));
        stopped_at.wake();
        assert!(stopped_at.now() > Time::from_nanos(7));
        let running = Clock { start: 0, stopped_at: None };
        let before = running.now();
        assert!((0..1_000_000).any(|_| running.now() > before));
    }
}
