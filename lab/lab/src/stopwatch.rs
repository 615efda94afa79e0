//! Measures wall-clock time, for speeds and progress and never for results.

#![expect(clippy::disallowed_types, reason = "the one place where real time passes")]

use std::time::Instant;

/// A timer of the wall clock.
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
