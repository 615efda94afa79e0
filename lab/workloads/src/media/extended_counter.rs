//! Extends sequence numbers of a few bits that wrap around. RFC 3550 appendix A.1.

/// Extends the lower `BITS` bits of a counter to the whole number; contains the largest number so far.
#[derive(Debug, Default)]
pub(super) struct ExtendedCounter<const BITS: u32> {
    highest: u64,
}

impl<const BITS: u32> ExtendedCounter<BITS> {
    /// Returns the number nearest to the largest one so far whose lower bits are `bits`; `None` if it would be
    /// negative.
    pub(super) fn extend(&self, bits: u32) -> Option<u64> {
        let around = 1_u64 << BITS;
        let ahead = u64::from(bits).wrapping_sub(self.highest) % around;
        let behind = around - ahead;
        if ahead < around / 2 { Some(self.highest + ahead) } else { self.highest.checked_sub(behind) }
    }

    /// Returns the number as [`Self::extend`] does, and updates the largest number.
    pub(super) fn extend_and_update(&mut self, bits: u32) -> Option<u64> {
        let number = self.extend(bits)?;
        self.highest = self.highest.max(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counter_before_the_first_one_is_refused() {
        let mut numbers = ExtendedCounter::<16>::default();
        assert_eq!(
            (numbers.extend_and_update(0xffff), numbers.extend_and_update(2), numbers.extend_and_update(1)),
            (None, Some(2), Some(1))
        );
    }

    proptest! {
        #[test]
        fn numbers_are_extended_despite_loss_and_reordering(steps in proptest::collection::vec(-1000i64..30_000, 1..100)) {
            let (mut numbers, mut highest) = (ExtendedCounter::<16>::default(), 0_i64);
            for step in steps {
                let number = (highest + step).max(0);
                highest = highest.max(number);
                prop_assert_eq!(numbers.extend_and_update((number as u64 % 65_536) as u32), Some(number as u64));
            }
        }
    }
}
