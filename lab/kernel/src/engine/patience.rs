//! How long a machine may take, by the wall clock.

use std::time::Duration;

use crate::KernelError;
use crate::error::MachineFault;

/// So often it is asked whether a run is to go on.
const LOOK: Duration = Duration::from_millis(200);

/// How much wall-clock time is left.
#[derive(Debug)]
pub(super) struct Patience {
    /// If it ends.
    until: Option<Clock>,
    limit: Duration,
}

#[expect(
    clippy::disallowed_types,
    reason = "machines are watched by the wall clock; no result depends on it"
)]
type Clock = std::time::Instant;

impl Patience {
    /// `limit` from now on.
    pub(super) fn new(limit: Duration) -> Self {
        Self { until: Some(Clock::now() + limit), limit }
    }

    /// For ever.
    pub(super) const fn endless() -> Self {
        Self { until: None, limit: Duration::MAX }
    }

    /// So long one may wait before [`Patience::ask`].
    pub(super) fn wait(&self) -> Duration {
        self.left().min(LOOK)
    }

    /// Nothing came of a wait: whether it `goes_on`, and whether there is time left for what is being done.
    pub(super) fn ask(
        &self,
        doing: &'static str,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), KernelError> {
        if !goes_on() {
            return Err(KernelError::Interrupted);
        }
        if self.left().is_zero() {
            return Err(MachineFault::TooLong { doing, seconds: self.limit.as_secs() }.into());
        }
        Ok(())
    }

    fn left(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Clock::now()))
    }
}
