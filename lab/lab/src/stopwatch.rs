//! The wall clock: for speeds and for the user's patience, never for results.

#![expect(clippy::disallowed_types, reason = "the one place where real time passes")]

use std::time::Instant;

/// Measures real time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    pub fn seconds(self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
