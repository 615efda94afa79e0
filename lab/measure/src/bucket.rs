//! The buckets of latencies, with the log-linear layout of HdrHistogram at four significant digits.

use hol_base::Duration;

/// Number of significant bits of a bucket. The width of a bucket is at most 2^-14 of its values, so that its
/// middle differs from them by at most 0.003 %.
const SIGNIFICANT_BITS: u32 = 15;

/// A range of latencies that are counted together; the buckets are numbered in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bucket(pub u32);

impl Bucket {
    /// Returns the bucket to which `latency` belongs.
    pub fn containing(latency: Duration) -> Self {
        let nanos = latency.as_nanos();
        let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(SIGNIFICANT_BITS);
        // The mantissa is at least 2^14 once the shift is above zero, so the octaves join without a gap.
        Self((shift << (SIGNIFICANT_BITS - 1)) + (nanos >> shift) as u32)
    }

    /// Returns the middle of the bucket, rounded down.
    pub fn middle(self) -> Duration {
        let shift = (self.0 >> (SIGNIFICANT_BITS - 1)).saturating_sub(1);
        let mantissa = u64::from(self.0 - (shift << (SIGNIFICANT_BITS - 1)));
        Duration::from_nanos((mantissa << shift) + ((1 << shift) - 1) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn middle_of(nanos: u64) -> u64 {
        Bucket::containing(Duration::from_nanos(nanos)).middle().as_nanos()
    }

    #[test]
    fn the_middle_of_a_bucket_is_rounded_down() {
        assert_eq!([32_768, 32_769, 32_770].map(middle_of), [32_768, 32_768, 32_770]);
        assert_eq!([65_536, 65_539, 65_540].map(middle_of), [65_537, 65_537, 65_541]);
    }

    #[test]
    fn short_latencies_are_exact_to_the_nanosecond() {
        for nanos in (0..32_768).step_by(7).chain([16_383, 16_384, 32_767]) {
            assert_eq!(middle_of(nanos), nanos);
        }
    }

    #[test]
    fn every_latency_is_exact_to_four_digits() {
        for octave in 15..63 {
            for nanos in [1 << octave, (1 << octave) + 1, (3 << octave) / 2, (2 << octave) - 1] {
                let error = middle_of(nanos).abs_diff(nanos) as f64 / nanos as f64;
                assert!(error <= 1.0 / 32_768.0, "{nanos} ns is off by {error}");
            }
        }
    }

    #[test]
    fn buckets_are_ordered_by_value_without_gaps() {
        for octave in 14..62 {
            let first = 1u64 << octave;
            let below = Bucket::containing(Duration::from_nanos(first - 1));
            assert_eq!(Bucket::containing(Duration::from_nanos(first)), Bucket(below.0 + 1));
        }
    }
}
