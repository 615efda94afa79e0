//! The guest's clock, which shows virtual time.

use std::time::Duration;

/// Returns the wall clock, in ns since 1970.
pub(super) fn wall() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Waits for this long.
#[expect(clippy::disallowed_methods, reason = "in here time is the machine's virtual time")]
pub(super) fn wait(time: Duration) {
    std::thread::sleep(time);
}

/// The type of an instant.
#[expect(clippy::disallowed_types, reason = "in here the clock is the machine's virtual one")]
pub(super) type Clock = std::time::Instant;
