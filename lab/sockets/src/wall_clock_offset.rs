//! The offset between the wall clock and the monotonic clock, which run at the same rate until the wall clock
//! is set.

use crate::clock::{monotonic, wall_clock};

/// A lower and an upper bound of the offset of the wall clock from the monotonic clock, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WallClockOffset {
    /// Lower bound of the wall clock's offset from the monotonic clock, in ns.
    min: i64,
    /// Upper bound of the wall clock's offset from the monotonic clock, in ns.
    max: i64,
}

impl WallClockOffset {
    /// Number of readings of the clocks; only the fastest is used.
    const CLOCK_READINGS: usize = 8;

    /// Reads both clocks several times and returns the fastest reading.
    pub(crate) fn read() -> Self {
        let readings =
            (0..Self::CLOCK_READINGS).map(|_| Self::between(monotonic(), wall_clock(), monotonic()));
        readings.min_by_key(|one| one.max - one.min).expect("CLOCK_READINGS is above zero")
    }

    /// Derives the bounds from a reading of the wall clock between two readings of the monotonic clock, in ns.
    fn between(before: u64, wall_clock: u64, after: u64) -> Self {
        let ahead = |of: u64| wall_clock as i64 - of as i64;
        Self { min: ahead(after), max: ahead(before) }
    }

    /// Converts a wall-clock time to the monotonic clock, both in ns; `None` for a time before the monotonic clock's
    /// zero.
    pub(crate) fn to_monotonic(self, shown: u64) -> Option<u64> {
        shown.checked_add_signed(-self.min.midpoint(self.max))
    }

    /// Returns whether the wall clock was set between these two measurements: their bounds exclude each other.
    pub(crate) fn was_set(self, other: Self) -> bool {
        self.max < other.min || other.max < self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_time_is_converted_to_the_monotonic_clock() {
        // The offset is 5,000,000 to 5,000,020 ns.
        let offset = WallClockOffset::between(1000, 5_001_020, 1020);
        assert_eq!(offset.to_monotonic(5_001_010), Some(1000));
        assert_eq!(offset.to_monotonic(5_007_010), Some(7000));
        assert_eq!(offset.to_monotonic(4_000_000), None, "before the machine was up");
        // A negative offset, as on a machine whose wall clock shows 1970.
        let behind = WallClockOffset::between(9000, 2000, 9000);
        assert_eq!((behind.to_monotonic(2500), behind.to_monotonic(u64::MAX)), (Some(9500), None));
    }

    #[test]
    fn setting_the_wall_clock_is_detected_and_a_slow_reading_is_not() {
        let before = WallClockOffset::between(1000, 5_000_000, 1020);
        let later = |set: i64, took: u64| {
            let now = 1_000_000_000;
            let wall_clock = 5_000_000 - 1010 + now + took / 2;
            WallClockOffset::between(now, wall_clock.checked_add_signed(set).unwrap(), now + took)
        };
        assert!(!before.was_set(later(0, 20)) && !before.was_set(later(0, 1_000_000)));
        for set in [-1_000_000, -1000, 1000, 1_000_000_000] {
            assert!(before.was_set(later(set, 20)) && later(set, 20).was_set(before), "{set}");
        }
        assert!(
            !WallClockOffset::read().was_set(WallClockOffset::read()),
            "the clock was not set in between"
        );
    }
}
