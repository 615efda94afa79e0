//! The kernel's monotonic clock as the run's time, and an alarm on it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hol_base::Time;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// Counts from when it was made.
#[derive(Debug)]
pub(crate) struct Clock {
    start: u64,
}

/// Readable from the time that it is set to. It has the precision of the kernel's high resolution timers,
/// where the timeouts of `epoll_wait` and `poll` have slack.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    set: Time,
}

impl Clock {
    const SECOND: u64 = 1_000_000_000;

    pub(crate) fn start() -> Self {
        Self { start: monotonic() }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.start)
    }

    /// What the wall clock showed when this one began, in ns since 1970.
    pub(crate) fn epoch(&self) -> u64 {
        // Between two readings, for a reading takes time too.
        let before = monotonic();
        let wall = nanos(ClockId::Realtime);
        let now = before.midpoint(monotonic());
        wall - (now - self.start)
    }

    /// The kernel's own name for a time.
    fn timespec(&self, at: Time) -> Timespec {
        let nanos = self.start.saturating_add(at.as_nanos());
        Timespec { tv_sec: (nanos / Self::SECOND) as i64, tv_nsec: (nanos % Self::SECOND) as i64 }
    }
}

fn monotonic() -> u64 {
    nanos(ClockId::Monotonic)
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * Clock::SECOND + now.tv_nsec as u64
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, set: Time::MAX })
    }

    /// Sets it, which also stops it ringing; [`Time::MAX`]: never.
    pub(crate) fn set(&mut self, clock: &Clock, at: Time) -> io::Result<()> {
        if at == self.set {
            return Ok(());
        }
        self.set = at;
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = if at == Time::MAX { never } else { clock.timespec(at) };
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
