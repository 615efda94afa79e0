//! The clock of another host relative to this host's: its offset before and after a run, and the uncertainty.
//!
//! A query and its reply take a round trip; the reply contains two times of the other host. These lie between the two times of this host,
//! so the offset is known to within half the round trip, even on asymmetric paths. RFC 5905 section 8

/// The times of a query and its reply, in ns. Each time is on the clock of the host where it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockComparison {
    /// The time at which this host sent the query.
    pub(crate) query_sent_at: u64,
    /// The time at which the query arrived at the other host.
    pub(crate) query_received_at: u64,
    /// The time at which the other host sent the reply.
    pub(crate) reply_sent_at: u64,
    /// The time at which the reply arrived at this host.
    pub(crate) reply_received_at: u64,
}

impl ClockComparison {
    /// Returns the round-trip time of query and reply in ns, without the time at the other host.
    pub(crate) fn round_trip(self) -> u64 {
        (self.reply_received_at - self.query_sent_at)
            .saturating_sub(self.reply_sent_at.saturating_sub(self.query_received_at))
    }

    /// Returns by how much the other host's clock is ahead of this host's, in ns.
    fn offset(self) -> i128 {
        let [sent_at, received, sent, answered_at] =
            [self.query_sent_at, self.query_received_at, self.reply_sent_at, self.reply_received_at]
                .map(i128::from);
        clamp_to_i64(((received - sent_at) + (sent - answered_at)) / 2).into()
    }

    fn middle(self) -> u64 {
        self.query_sent_at.midpoint(self.reply_received_at)
    }

    /// Returns the comparison with the shortest round trip, because its packets spent the least time in queues.
    pub(crate) fn best(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().min_by_key(|one| one.round_trip())
    }
}

/// The two comparisons of this host's clock with another host's, before and after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// The comparison of the clocks before the run.
    pub(crate) before: ClockComparison,
    /// The comparison of the clocks after the run.
    pub(crate) after: ClockComparison,
}

impl Clocks {
    /// Converts a time on the other host's clock to this host's clock. Interpolates the offset between the two
    /// comparisons; the result is at most the end of the second comparison.
    pub(crate) fn local_time(&self, there: u64) -> u64 {
        let (first, last) = (self.before.offset(), self.after.offset());
        let passed = i128::from(there) - first - i128::from(self.before.middle());
        let whole = i128::from(self.after.middle() - self.before.middle()).max(1);
        let offset = first + (last - first) * passed.clamp(0, whole) / whole;
        (i128::from(there) - offset).clamp(0, self.after.reply_received_at.into()) as u64
    }

    /// Returns by how much the other host's clock was ahead before the run, in ns.
    pub(crate) fn offset(&self) -> i64 {
        clamp_to_i64(self.before.offset())
    }

    /// Returns by how much the other host's clock ran faster than this host's, in parts per 10⁹.
    pub(crate) fn drift(&self) -> i64 {
        let whole = i128::from(self.after.middle() - self.before.middle()).max(1);
        clamp_to_i64((self.after.offset() - self.before.offset()) * 1_000_000_000 / whole)
    }

    /// Returns the maximum error of a time converted to this host's clock, in ns.
    pub(crate) fn uncertainty(&self) -> u64 {
        self.before.round_trip().max(self.after.round_trip()).div_ceil(2)
    }

    /// Returns the shorter one of the round trips of the two comparisons, in ns.
    pub(crate) fn round_trip(&self) -> u64 {
        self.before.round_trip().min(self.after.round_trip())
    }
}

fn clamp_to_i64(number: i128) -> i64 {
    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a comparison: a query sent at `sent_at` to a clock that is `ahead`, with delays `there` and `back`; the reply takes 5 ns.
    fn comparison(sent_at: u64, ahead: i64, there: u64, back: u64) -> ClockComparison {
        let received = (sent_at + there).checked_add_signed(ahead).unwrap();
        ClockComparison {
            query_sent_at: sent_at,
            query_received_at: received,
            reply_sent_at: received + 5,
            reply_received_at: sent_at + there + 5 + back,
        }
    }

    #[test]
    fn the_comparison_with_the_shortest_round_trip_is_used() {
        let [slow, fast] = [comparison(0, 100, 900, 50), comparison(2000, 100, 20, 30)];
        assert_eq!(ClockComparison::best([slow, fast, slow]), Some(fast));
        assert_eq!((fast.round_trip(), fast.offset()), (50, 95));
        assert_eq!(ClockComparison::best([]), None);
    }

    #[test]
    fn drift_is_spread_over_the_time_between_two_comparisons() {
        let second = 1_000_000_000;
        let clocks = Clocks {
            before: comparison(second, 1000, 50, 50),
            after: comparison(11 * second, 21_000, 50, 50),
        };
        assert_eq!((clocks.offset(), clocks.drift(), clocks.uncertainty()), (1000, 2000, 50));
        // Halfway through, the other clock is 11 µs ahead.
        assert!(clocks.local_time(6 * second + 11_000).abs_diff(6 * second) <= 1);
        assert_eq!(clocks.local_time(0), 0, "before it was compared it was not otherwise");
    }

    proptest! {
        #[test]
        fn converted_times_are_within_the_uncertainty(
            ahead in -1_000_000_000_000i64..1_000_000_000_000,
            ways in [1u64..1_000_000, 1..1_000_000, 1..1_000_000, 1..1_000_000],
            lasted in 1_000_000_000u64..100_000_000_000,
            part in 0.0..1.0f64,
        ) {
            let begin = 2_000_000_000_000;
            let [there, back, later_there, later_back] = ways;
            let clocks = Clocks {
                before: comparison(begin, ahead, there, back),
                after: comparison(begin + lasted, ahead, later_there, later_back),
            };
            let now = begin + (lasted as f64 * part) as u64;
            let told = clocks.local_time(now.checked_add_signed(ahead).unwrap());
            prop_assert!(told.abs_diff(now) <= clocks.uncertainty() + 1);
        }

        #[test]
        fn any_clock_values_can_be_converted(times in any::<[u64; 6]>(), there in any::<u64>()) {
            let one = |sent_at: u64, received, sent| ClockComparison {
                query_sent_at: sent_at,
                query_received_at: received,
                reply_sent_at: sent,
                reply_received_at: sent_at + 7,
            };
            let [sent_at, received, sent, later, later_received, later_sent] = times;
            let (sent_at, later) = (sent_at >> 2, later >> 2);
            let [sent_at, later] = [sent_at.min(later), sent_at.max(later)];
            let clocks = Clocks { before: one(sent_at, received, sent), after: one(later, later_received, later_sent) };
            prop_assert!(clocks.local_time(there) <= later + 7);
            let _ = (clocks.offset(), clocks.drift(), clocks.uncertainty());
        }
    }
}
