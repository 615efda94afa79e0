//! The guest's clock, which shows virtual time.

use std::time::Duration;

use nix::sys::prctl::{get_timerslack, set_timerslack};

/// Returns the time of the wall clock, in ns since 1970.
pub(super) fn wall_clock_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Waits exactly for the time `time`. By default the kernel may wake a thread up to 50 µs late
/// (PR_SET_TIMERSLACK). That would shift the run, or a change of the network, relative to TCP's timestamps (in ms)
/// and to the slots of the timer wheel.
#[expect(clippy::disallowed_methods, reason = "inside the virtual machine, sleep waits in virtual time")]
pub(super) fn wait(time: Duration) -> nix::Result<()> {
    let slack = get_timerslack()?;
    set_timerslack(1)?;
    std::thread::sleep(time);
    // Restored, because programs that this thread starts inherit it.
    set_timerslack(slack.unsigned_abs().into())
}

/// The type of a point in virtual time.
#[expect(clippy::disallowed_types, reason = "inside the virtual machine, the clock shows virtual time")]
pub(super) type VirtualInstant = std::time::Instant;
