//! The clock of another host by ours: how far it is ahead, before a run and after, and how sure that is.
//!
//! A question and its answer take a round trip; when the other host had them, its clock showed what it says. It was between the two
//! times here, so its offset is known to half of the round trip, whatever the ways there and back take. RFC 5905 section 8

/// What a question and its answer tell; times in ns, each on its host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// When it was asked, here.
    pub(crate) asked: u64,
    /// When the question came, there, and when the answer went.
    pub(crate) received: u64,
    pub(crate) sent: u64,
    /// When the answer came, here.
    pub(crate) answered: u64,
}

impl Comparison {
    /// The time that was spent on the way.
    pub(crate) fn round_trip(self) -> u64 {
        (self.answered - self.asked).saturating_sub(self.sent.saturating_sub(self.received))
    }

    /// How far the other clock is ahead.
    fn offset(self) -> i128 {
        let [asked, received, sent, answered] =
            [self.asked, self.received, self.sent, self.answered].map(i128::from);
        narrow(((received - asked) + (sent - answered)) / 2).into()
    }

    fn middle(self) -> u64 {
        self.asked.midpoint(self.answered)
    }

    /// The one of the least round trip: it has waited least.
    pub(crate) fn best(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().min_by_key(|one| one.round_trip())
    }
}

/// Two clocks, compared before a run and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    pub(crate) before: Comparison,
    pub(crate) after: Comparison,
}

impl Clocks {
    /// A time of the other host's clock by ours: between the comparisons the offset goes evenly from the one to the other. What was
    /// noted was noted before the last of them ended.
    pub(crate) fn here(&self, there: u64) -> u64 {
        let (first, last) = (self.before.offset(), self.after.offset());
        let passed = i128::from(there) - first - i128::from(self.before.middle());
        let whole = i128::from(self.after.middle() - self.before.middle()).max(1);
        let offset = first + (last - first) * passed.clamp(0, whole) / whole;
        (i128::from(there) - offset).clamp(0, self.after.answered.into()) as u64
    }

    /// How far the other clock was ahead before the run.
    pub(crate) fn offset(&self) -> i64 {
        narrow(self.before.offset())
    }

    /// How much faster it went, in parts of 10⁹.
    pub(crate) fn drift(&self) -> i64 {
        let whole = i128::from(self.after.middle() - self.before.middle()).max(1);
        narrow((self.after.offset() - self.before.offset()) * 1_000_000_000 / whole)
    }

    /// No time is wrong by more.
    pub(crate) fn uncertainty(&self) -> u64 {
        self.before.round_trip().max(self.after.round_trip()).div_ceil(2)
    }

    pub(crate) fn round_trip(&self) -> u64 {
        self.before.round_trip().min(self.after.round_trip())
    }
}

fn narrow(number: i128) -> i64 {
    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A question at `asked`, here, to a clock that is `ahead`; the ways there and back take so long, the answer takes 5 ns.
    fn comparison(asked: u64, ahead: i64, there: u64, back: u64) -> Comparison {
        let received = (asked + there).checked_add_signed(ahead).unwrap();
        Comparison { asked, received, sent: received + 5, answered: asked + there + 5 + back }
    }

    #[test]
    fn the_comparison_that_waited_least_is_taken() {
        let [slow, fast] = [comparison(0, 100, 900, 50), comparison(2000, 100, 20, 30)];
        assert_eq!(Comparison::best([slow, fast, slow]), Some(fast));
        assert_eq!((fast.round_trip(), fast.offset()), (50, 95));
        assert_eq!(Comparison::best([]), None);
    }

    #[test]
    fn drift_is_spread_over_the_time_between_two_comparisons() {
        let second = 1_000_000_000;
        let clocks = Clocks {
            before: comparison(second, 1000, 50, 50),
            after: comparison(11 * second, 21_000, 50, 50),
        };
        assert_eq!((clocks.offset(), clocks.drift(), clocks.uncertainty()), (1000, 2000, 50));
        // Halfway the other clock is 11 µs ahead.
        assert!(clocks.here(6 * second + 11_000).abs_diff(6 * second) <= 1);
        assert_eq!(clocks.here(0), 0, "before it was compared it was not otherwise");
    }

    proptest! {
        #[test]
        fn no_time_is_wrong_by_more_than_is_said(
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
            let told = clocks.here(now.checked_add_signed(ahead).unwrap());
            prop_assert!(told.abs_diff(now) <= clocks.uncertainty() + 1);
        }

        #[test]
        fn whatever_a_clock_says_there_is_an_answer(times in any::<[u64; 6]>(), there in any::<u64>()) {
            let one = |asked: u64, received, sent| Comparison { asked, received, sent, answered: asked + 7 };
            let [asked, received, sent, later, later_received, later_sent] = times;
            let (asked, later) = (asked >> 2, later >> 2);
            let [asked, later] = [asked.min(later), asked.max(later)];
            let clocks = Clocks { before: one(asked, received, sent), after: one(later, later_received, later_sent) };
            prop_assert!(clocks.here(there) <= later + 7);
            let _ = (clocks.offset(), clocks.drift(), clocks.uncertainty());
        }
    }
}
