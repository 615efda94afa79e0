//! The wall-clock limit of a machine.

use std::time::Duration;

use crate::KernelError;
use crate::error::MachineFault;

/// The interval at which a waiting function checks whether the run is to continue.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The wall-clock time at which a virtual machine is stopped.
#[derive(Debug)]
pub(super) struct Deadline {
    /// The time of the deadline; `None` if there is no limit.
    ends_at: Option<Clock>,
    /// The time from the start until the deadline.
    limit: Duration,
}

#[expect(
    clippy::disallowed_types,
    reason = "deadlines of machines use the wall clock; no result depends on it"
)]
type Clock = std::time::Instant;

impl Deadline {
    /// Creates a deadline that passes after the time `limit`.
    pub(super) fn new(limit: Duration) -> Self {
        Self { ends_at: Some(Clock::now() + limit), limit }
    }

    /// Creates a deadline that never passes.
    pub(super) const fn never() -> Self {
        Self { ends_at: None, limit: Duration::MAX }
    }

    /// Returns how long a function may wait before it must call [`Deadline::check`] again.
    pub(super) fn wait_time(&self) -> Duration {
        self.remaining().min(CHECK_INTERVAL)
    }

    /// Returns an error if the run has been stopped, or if the deadline has passed.
    pub(super) fn check(
        &self,
        doing: &'static str,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), KernelError> {
        if !goes_on() {
            return Err(KernelError::Interrupted);
        }
        if self.remaining().is_zero() {
            return Err(MachineFault::TooLong { doing, seconds: self.limit.as_secs() }.into());
        }
        Ok(())
    }

    fn remaining(&self) -> Duration {
        self.ends_at.map_or(Duration::MAX, |end| end.saturating_duration_since(Clock::now()))
    }
}
