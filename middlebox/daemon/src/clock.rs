//! Real time that only moves forwards, so that the end of a rule stays valid over a restart.

use std::fs;
use std::path::Path;

use hol_base::{Duration, Time};
use rustix::time::{ClockId, clock_gettime};

use crate::SetupError;

/// A clock in nanoseconds since 1970: the wall clock at the start plus the time since then. It ignores later changes of
/// the wall clock, because lifetimes are durations, not dates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// The wall-clock time at which the monotonic clock was zero, in nanoseconds since 1970.
    epoch: u64,
}

impl Clock {
    pub fn start() -> Self {
        // The wall clock is read between two readings of the monotonic clock, because a reading takes time.
        let before = nanos(ClockId::Monotonic);
        let wall = nanos(ClockId::Realtime);
        Self { epoch: wall.saturating_sub(before.midpoint(nanos(ClockId::Monotonic))) }
    }

    /// Returns the clock for the rules in this directory. Until the machine reboots, it is the clock of the previous
    /// daemon, even if the wall clock has been changed since.
    pub fn stored_in(directory: &Path) -> Self {
        let stored = fs::read_to_string(directory.join(CLOCK_FILE)).ok();
        stored.zip(boot()).and_then(|(stored, boot)| Self::parse(&stored, &boot)).unwrap_or_else(Self::start)
    }

    /// Returns a clock that shows `now` at this moment, for example the time of a middlebox whose rules are copied.
    pub fn starting_at(now: Time) -> Self {
        Self { epoch: now.as_nanos().saturating_sub(nanos(ClockId::Monotonic)) }
    }

    /// Returns the difference between this clock and another.
    pub fn abs_diff(self, other: Self) -> Duration {
        Duration::from_nanos(self.epoch.abs_diff(other.epoch))
    }

    fn parse(stored: &str, boot: &str) -> Option<Self> {
        let (its_boot, epoch) = stored.trim_end().split_once(' ')?;
        Some(Self { epoch: epoch.parse().ok().filter(|_| its_boot == boot)? })
    }

    /// Stores this clock in the directory, for the next daemon, unless it is already stored.
    pub fn save(self, directory: &Path) -> Result<(), SetupError> {
        let Some(boot) = boot() else { return Ok(()) };
        let (path, unfinished) = (directory.join(CLOCK_FILE), directory.join(format!("{CLOCK_FILE}.new")));
        let text = format!("{boot} {}\n", self.epoch);
        if fs::read_to_string(&path).is_ok_and(|stored| stored == text) {
            return Ok(());
        }
        let write = || {
            fs::write(&unfinished, text)?;
            fs::rename(&unfinished, &path)
        };
        write().map_err(|source| SetupError::Clock { path: path.clone(), source })
    }

    pub fn now(self) -> Time {
        Time::from_nanos(self.epoch + nanos(ClockId::Monotonic))
    }
}

/// The name of the file with the stored clock: the identifier of the boot, and the epoch.
const CLOCK_FILE: &str = "clock";

/// Returns the identifier of this boot of the machine (random(4)); `None` if it is unknown.
fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|boot| boot.trim_end().to_owned())
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
impl Clock {
    /// Sets the clock forward by `span`.
    pub fn skip(&mut self, span: Duration) {
        self.epoch += span.as_nanos();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_clock_continues_whatever_the_wall_clock_shows() {
        let directory = tempfile::tempdir().unwrap();
        let set_back = Clock { epoch: 42 };
        set_back.save(directory.path()).unwrap();
        let expected = if boot().is_some() { 42 } else { Clock::start().epoch };
        assert_eq!(Clock::stored_in(directory.path()).epoch, expected);
    }

    #[test]
    fn a_missing_clock_or_that_of_another_boot_is_not_continued() {
        assert!(Clock::parse("this 42\n", "this").is_some());
        for stored in ["that 42\n", "this\n", "this x\n", "", "this -1"] {
            assert!(Clock::parse(stored, "this").is_none(), "{stored}");
        }
    }
}
