//! The phase of the kernel's timer wheel. A timer of TCP or SCTP expires at a slot of the wheel
//! (kernel/time/timer.c), so the phase at which a run begins decides when its timers expire. Every run
//! begins where the slots of all levels begin, as runs of the model do.

use std::fs;
use std::time::Duration;

use super::GuestError;
use super::clock::wait;

/// The number of jiffies after which slots of levels 0 to 3 of the timer wheel begin at the same time. These levels
/// contain timers of up to 131 s at 250 Hz.
const SLOT_PERIOD: u64 = 4096;
/// The time by which the run starts after the beginning of these slots, in ns, so that the kernel has counted the
/// tick.
const START_DELAY: u64 = 1_000;

/// The state of the kernel's periodic timer tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    /// The time of the monotonic clock, in ns.
    now: u64,
    /// The number of ticks so far.
    jiffies: u64,
    /// The time of the last tick, in ns.
    tick: u64,
    /// The time between two ticks, in ns.
    period: u64,
}

impl Ticks {
    /// Parses the state of the first processor's tick in `/proc/timer_list` (kernel/time/timer_list.c).
    fn read(text: &str, hz: u64) -> Option<Self> {
        let number = |head: &str| -> Option<u64> {
            let line = text.lines().map(str::trim_start).find_map(|line| line.strip_prefix(head))?;
            line.trim_start_matches([' ', ':']).split_whitespace().next()?.parse().ok()
        };
        let (now, jiffies, tick) = (number("now at ")?, number("jiffies")?, number(".last_tick")?);
        Some(Self { now, jiffies, tick, period: 1_000_000_000 / hz })
    }

    /// Returns the time until slots of all levels of the timer wheel begin at the same time.
    fn until_slots_begin(self) -> Duration {
        let since_tick = (self.now + self.period - self.tick % self.period) % self.period;
        let ticks = SLOT_PERIOD - self.jiffies % SLOT_PERIOD;
        Duration::from_nanos(ticks * self.period - since_tick + START_DELAY)
    }
}

/// Waits, in virtual time, until slots of all levels of the timer wheel begin at the same time.
pub(super) fn wait_for_slots() -> Result<(), GuestError> {
    let path = "/proc/timer_list";
    let text = fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
    // CONFIG_HZ of this project's User-Mode Linux and of Debian's kernels. With another value the phase is still the same in every run.
    let ticks = Ticks::read(&text, 250)
        .ok_or_else(|| format!("{path} does not contain the time of the next tick"))?;
    wait(ticks.until_slots_begin())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Timer List Version: v0.10\nHRTIMER_MAX_CLOCK_BASES: 8\nnow at 1234001000 nsecs\n\ncpu: 0\n\
        \x20 .nohz           : 1\n  .last_tick      : 1232000500 nsecs\n  .idle_tick      : 0 nsecs\njiffies: 4294892608\n";

    #[test]
    fn ticks_are_parsed_and_the_next_common_slot_is_found() {
        let ticks = Ticks::read(TEXT, 250).unwrap();
        let expected =
            Ticks { now: 1_234_001_000, jiffies: 4_294_892_608, tick: 1_232_000_500, period: 4_000_000 };
        assert_eq!(ticks, expected);
        // 4,294,892,608 is 1,048,557.8 times 4096: 576 ticks are missing, and the last tick was 2.0005 ms ago.
        let missing = SLOT_PERIOD - 4_294_892_608 % SLOT_PERIOD;
        assert_eq!(
            ticks.until_slots_begin(),
            Duration::from_nanos(missing * 4_000_000 - 2_000_500 + START_DELAY)
        );
        assert_eq!(Ticks::read("jiffies: 1\n", 250), None);
    }
}
