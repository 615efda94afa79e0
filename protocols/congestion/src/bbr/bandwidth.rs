//! Bandwidth estimates, and their maximum over the last rounds.

use hol_base::Duration;

/// A bandwidth in units of the congestion window per 2^24 µs; gains are in 256ths. tcp_bbr.c, BW_SCALE and BBR_SCALE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Bandwidth(u64);

/// The value of a gain of 1, in 256ths.
pub(crate) const GAIN_ONE: u32 = 256;
const BW_SCALE: u32 = 24;

impl Bandwidth {
    /// Returns the bandwidth of `delivered` units in `interval`, which must not be zero.
    pub(crate) fn of(delivered: u32, interval: Duration) -> Self {
        let scaled = (u128::from(delivered) * 1000) << BW_SCALE;
        Self((scaled / u128::from(interval.as_nanos().max(1))) as u64)
    }

    /// Returns the number of units delivered in `time` at this bandwidth times `gain`, rounded up or down.
    fn in_time(self, time: Duration, gain: u32, round_up: bool) -> u32 {
        let scaled = (u128::from(self.0) * u128::from(time.as_nanos()) * u128::from(gain)) >> 8;
        let one = 1000u128 << BW_SCALE;
        let units = if round_up { scaled.div_ceil(one) } else { scaled / one };
        units.min(u128::from(u32::MAX)) as u32
    }

    /// Returns the number of whole units delivered in `time`.
    pub(crate) fn units_in(self, time: Duration) -> u32 {
        self.in_time(time, GAIN_ONE, false)
    }

    /// Returns `gain` times the bandwidth-delay product, in units, rounded up.
    pub(crate) fn bdp(self, round_trip: Duration, gain: u32) -> u32 {
        self.in_time(round_trip, gain, true)
    }

    /// Returns `gain` times this bandwidth in octets per second; `octets` is the size of a unit.
    pub(crate) fn octets_per_second(self, octets: u32, gain: u32) -> u64 {
        let scaled = (u128::from(self.0) * u128::from(octets) * u128::from(gain)) >> 8;
        ((scaled * 1_000_000) >> BW_SCALE) as u64
    }

    /// Returns `gain` times this bandwidth.
    pub(crate) fn times(self, gain: u32) -> Self {
        Self((self.0 * u64::from(gain)) >> 8)
    }

    pub(crate) fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    pub(crate) fn midpoint(self, other: Self) -> Self {
        Self(self.0.midpoint(other.0))
    }
}

/// A bandwidth sample, and the round in which it was taken.
#[derive(Debug, Clone, Copy, Default)]
struct BandwidthSample {
    /// The number of the round in which the sample was taken.
    round: u32,
    bandwidth: Bandwidth,
}

/// The maximum bandwidth of the last rounds. It keeps three samples: the best, and the best and second-best of
/// those that are newer. Kathleen Nichols' algorithm, as in win_minmax.c.
#[derive(Debug, Clone, Default)]
pub(crate) struct MaxFilter([BandwidthSample; 3]);

impl MaxFilter {
    pub(crate) fn greatest(&self) -> Bandwidth {
        self.0[0].bandwidth
    }

    /// Adds a sample of `round`; samples older than `window` rounds expire.
    pub(crate) fn add(&mut self, window: u32, round: u32, bandwidth: Bandwidth) {
        let seen = BandwidthSample { round, bandwidth };
        let best = &mut self.0;
        if bandwidth >= best[0].bandwidth || round - best[2].round > window {
            *best = [seen; 3];
            return;
        }
        if bandwidth >= best[1].bandwidth {
            (best[1], best[2]) = (seen, seen);
        } else if bandwidth >= best[2].bandwidth {
            best[2] = seen;
        }
        self.remove_expired(window, seen);
    }

    /// Removes expired samples. The new sample `seen` becomes the second-best if the first quarter of the window
    /// has passed without one, and the third-best if the first half has.
    fn remove_expired(&mut self, window: u32, seen: BandwidthSample) {
        let best = &mut self.0;
        let age = seen.round - best[0].round;
        if age > window {
            for _ in 0..2 {
                if seen.round - best[0].round > window {
                    *best = [best[1], best[2], seen];
                }
            }
        } else if best[1].round == best[0].round && age > window / 4 {
            (best[1], best[2]) = (seen, seen);
        } else if best[2].round == best[1].round && age > window / 2 {
            best[2] = seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(delivered: u32) -> Bandwidth {
        Bandwidth::of(delivered, Duration::from_millis(1))
    }

    #[test]
    fn bdp_is_bandwidth_times_round_trip() {
        // 833 segments a second over 40 ms are 33.3 segments, and 66.7 with a gain of 2.
        let bandwidth = Bandwidth::of(833, Duration::from_secs(1));
        let round_trip = Duration::from_millis(40);
        assert_eq!((bandwidth.bdp(round_trip, GAIN_ONE), bandwidth.bdp(round_trip, 2 * GAIN_ONE)), (34, 67));
        assert_eq!(bandwidth.units_in(round_trip), 33);
        let rate = bandwidth.octets_per_second(1448, GAIN_ONE);
        assert!((rate as i64 - 833 * 1448).abs() < 100, "{rate}");
    }

    #[test]
    fn filter_returns_the_maximum_of_its_window() {
        let mut filter = MaxFilter::default();
        filter.add(10, 0, units(100));
        for round in 1..=10 {
            filter.add(10, round, units(50 - round));
            assert_eq!(filter.greatest(), units(100), "round {round}");
        }
        filter.add(10, 11, units(30));
        assert!(filter.greatest() < units(100));
        assert!(filter.greatest() >= units(40), "the best of those that came later");
        filter.add(10, 12, units(200));
        assert_eq!(filter.greatest(), units(200));
    }

    /// lib/win_minmax.c: the second and the third sample come from later parts of the window, so that one can
    /// replace the best.
    #[test]
    fn second_and_third_samples_come_from_later_parts_of_the_window() {
        let mut filter = MaxFilter::default();
        let mut greatest = Vec::new();
        let seen = [
            (0, 100),
            (1, 10),
            (3, 60),
            (4, 20),
            (6, 50),
            (7, 20),
            (10, 5),
            (11, 5),
            (13, 4),
            (14, 4),
            (17, 3),
        ];
        for (round, bandwidth) in seen {
            filter.add(10, round, units(bandwidth));
            greatest.push(filter.greatest());
        }
        let expected = [100, 100, 100, 100, 100, 100, 100, 60, 60, 50, 5].map(units);
        assert_eq!(greatest, expected);
    }

    /// The filter starts anew if no sample arrived for longer than the window, or if a sample is at least as good
    /// as the best.
    #[test]
    fn samples_older_than_the_window_are_discarded_at_once() {
        let after = |round| {
            let mut filter = MaxFilter::default();
            filter.add(10, 0, units(100));
            filter.add(10, round, units(1));
            filter.greatest()
        };
        assert_eq!((after(10), after(11)), (units(100), units(1)));
    }

    #[test]
    fn abs_diff_is_symmetric() {
        assert_eq!(units(30).abs_diff(units(50)), units(50).abs_diff(units(30)));
        assert_eq!(units(50).abs_diff(units(30)), units(20));
    }

    /// lib/win_minmax.c, minmax_subwin_update: if the samples only fall, the second is taken after a quarter
    /// of the window and the third after half of it.
    #[test]
    fn falling_bandwidth_is_followed_in_quarters_of_the_window() {
        let mut filter = MaxFilter::default();
        let mut changes = Vec::new();
        for age in 0..20 {
            let before = filter.greatest();
            filter.add(10, 5 + age, units(100 - age));
            if filter.greatest() != before {
                changes.push((age, filter.greatest()));
            }
        }
        assert_eq!(changes, [(0, 100), (11, 97), (14, 94), (17, 89)].map(|(age, seen)| (age, units(seen))));
    }
}
