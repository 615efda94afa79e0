//! A deadline in real time.
#![expect(clippy::disallowed_types, reason = "an agent waits for its middlebox by the wall clock")]

use std::time::Instant;

use hol_base::Duration;

/// A deadline; `None` never passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub fn never() -> Self {
        Self(None)
    }

    pub fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(to_std(timeout)))
    }

    /// Returns whether the deadline has passed.
    pub fn has_passed(self) -> bool {
        self.remaining().is_some_and(|remaining| remaining.is_zero())
    }

    /// Returns the time until the deadline, zero if it has passed; `None` if there is no deadline.
    pub fn remaining(self) -> Option<std::time::Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }
}

/// Converts a duration to the type of the standard library.
pub(crate) fn to_std(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}
