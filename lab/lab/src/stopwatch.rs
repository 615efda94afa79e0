//! Measures wall-clock time and processor time, for speeds and progress and never for results.

#![expect(clippy::disallowed_types, reason = "only this module reads the real clock")]

use std::time::Instant;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A stopwatch that measures wall-clock time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a stopwatch.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the seconds since the start.
    pub fn seconds(self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// A stopwatch that measures the processor time of the current thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadTimer(Timespec);

impl ThreadTimer {
    /// Starts a stopwatch for the processor time of this thread.
    pub(crate) fn start() -> Self {
        Self(clock_gettime(ClockId::ThreadCPUTime))
    }

    /// Returns the processor time that the thread has used since the start, in seconds.
    pub(crate) fn seconds(self) -> f64 {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        (now.tv_sec - self.0.tv_sec) as f64 + (now.tv_nsec - self.0.tv_nsec) as f64 / 1e9
    }
}
