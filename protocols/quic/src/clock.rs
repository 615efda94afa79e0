//! Converts virtual time to the instants that quinn-proto uses.

use std::sync::OnceLock;
use std::time::Duration;
#[expect(clippy::disallowed_types, reason = "quinn-proto uses instants, and only compares them")]
use std::time::Instant;

use hol_base::Time;

/// Returns the instant at which runs start. Only differences between instants matter. It is later than any
/// instant of a real machine, so that no subtraction underflows.
#[expect(clippy::disallowed_types, reason = "`Instant::now()` is the only source of an instant")]
fn origin() -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 366 * 86_400);
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(|| Instant::now() + CENTURY)
}

/// Converts a virtual time to an instant.
#[expect(clippy::disallowed_types, reason = "quinn-proto uses instants")]
pub(crate) fn instant(time: Time) -> Instant {
    origin() + Duration::from_nanos(time.as_nanos())
}

/// Converts an instant to a virtual time.
#[expect(clippy::disallowed_types, reason = "quinn-proto uses instants")]
pub(crate) fn time(instant: Instant) -> Time {
    Time::from_nanos(instant.duration_since(origin()).as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_comes_back_from_its_instant() {
        for nanos in [0, 1, 999_999_999, 1 << 60] {
            assert_eq!(time(instant(Time::from_nanos(nanos))), Time::from_nanos(nanos));
        }
    }
}
