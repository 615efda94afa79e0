//! Real time that only goes forwards, so that the end of a rule means the same after a restart.

use std::fs;
use std::path::Path;

use hol_base::Time;
use rustix::time::{ClockId, clock_gettime};

use crate::SetupError;

/// Nanoseconds since 1970: what the wall clock showed at the start, and what has passed since. It does not follow
/// when somebody sets the wall clock; lifetimes are spans, not dates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// What the wall clock showed when the monotonic one was at zero.
    epoch: u64,
}

impl Clock {
    pub fn start() -> Self {
        // Between two readings, for a reading takes time too.
        let before = nanos(ClockId::Monotonic);
        let wall = nanos(ClockId::Realtime);
        Self { epoch: wall.saturating_sub(before.midpoint(nanos(ClockId::Monotonic))) }
    }

    /// The clock that the rules in this directory are told by: as long as the machine has not been started anew, the one of
    /// an earlier daemon, whatever somebody has set the wall clock to meanwhile.
    pub fn of(directory: &Path) -> Self {
        let kept = fs::read_to_string(directory.join(FILE)).ok();
        kept.zip(boot()).and_then(|(kept, boot)| Self::parse(&kept, &boot)).unwrap_or_else(Self::start)
    }

    fn parse(kept: &str, boot: &str) -> Option<Self> {
        let (its_boot, epoch) = kept.trim_end().split_once(' ')?;
        Some(Self { epoch: epoch.parse().ok().filter(|_| its_boot == boot)? })
    }

    /// Has a later daemon go on with this clock.
    pub fn keep(self, directory: &Path) -> Result<(), SetupError> {
        let Some(boot) = boot() else { return Ok(()) };
        let (path, unfinished) = (directory.join(FILE), directory.join(format!("{FILE}.new")));
        let write = || {
            fs::write(&unfinished, format!("{boot} {}\n", self.epoch))?;
            fs::rename(&unfinished, &path)
        };
        write().map_err(|source| SetupError::Clock { path: path.clone(), source })
    }

    pub fn now(self) -> Time {
        Time::from_nanos(self.epoch + nanos(ClockId::Monotonic))
    }
}

/// Which boot of the machine the kept clock is of, and the epoch.
const FILE: &str = "clock";

/// Names this boot of the machine: random(4). `None` where the kernel does not tell.
fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|boot| boot.trim_end().to_owned())
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
impl Clock {
    /// Lets time pass.
    pub fn skip(&mut self, span: hol_base::Duration) {
        self.epoch += span.as_nanos();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_kept_goes_on_whatever_the_wall_clock_shows() {
        let directory = tempfile::tempdir().unwrap();
        let set_back = Clock { epoch: 42 };
        set_back.keep(directory.path()).unwrap();
        let expected = if boot().is_some() { 42 } else { Clock::start().epoch };
        assert_eq!(Clock::of(directory.path()).epoch, expected);
    }

    #[test]
    fn the_clock_of_another_boot_or_none_is_not_gone_on_with() {
        assert!(Clock::parse("this 42\n", "this").is_some());
        for kept in ["that 42\n", "this\n", "this x\n", "", "this -1"] {
            assert!(Clock::parse(kept, "this").is_none(), "{kept}");
        }
    }
}
