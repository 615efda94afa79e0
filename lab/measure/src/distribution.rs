//! The distribution of the latencies of one or many runs, over all offered messages.

use hol_base::Duration;
use serde::{Deserialize, Serialize};

use crate::bucket::Bucket;
use crate::buckets::Buckets;
use crate::packed_distribution::PackedDistribution;

/// The latencies of messages, counted with four significant digits; sum, sum of squares, minimum and maximum are
/// exact.
///
/// A message that never completed has an infinite latency, so that it is part of every share and quantile. Only
/// non-empty buckets are stored, and copies share them, so that the distributions of thousands of runs fit into
/// memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "PackedDistribution", into = "PackedDistribution")]
pub struct Distribution {
    /// Number of messages, including those that never completed.
    pub(crate) offered: u64,
    /// Number of messages with a latency.
    pub(crate) completed: u64,
    /// Sum of the latencies in ns.
    pub(crate) total: u128,
    /// Sum of the squared latencies in ns².
    pub(crate) squares: u128,
    /// The shortest and the longest latency; `None` if no message completed.
    pub(crate) range: Option<(Duration, Duration)>,
    pub(crate) buckets: Buckets,
}

impl Distribution {
    /// Returns the number of messages offered, completed or not.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Returns the number of messages that completed.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Returns the exact mean latency of the completed messages in ms.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.completed > 0).then(|| self.total as f64 / self.completed as f64 / 1e6)
    }

    /// Returns the standard deviation of the completed messages' latencies in ms; `None` with fewer than
    /// two.
    pub fn deviation_ms(&self) -> Option<f64> {
        let n = u128::from(self.completed);
        // n Σx² - (Σx)² is a whole number: no cancellation, however alike the latencies are.
        let spread = n.checked_mul(self.squares)?.checked_sub(self.total.checked_mul(self.total)?)?;
        (n > 1).then(|| (spread as f64 / (n as f64 * (n - 1) as f64)).sqrt() / 1e6)
    }

    /// Returns the shortest latency of a completed message.
    pub fn min(&self) -> Option<Duration> {
        self.range.map(|(min, _)| min)
    }

    /// Returns the longest latency of a completed message.
    pub fn max(&self) -> Option<Duration> {
        self.range.map(|(_, max)| max)
    }

    /// Returns the latency that a share `p` of the offered messages does not exceed; `None` if a smaller share
    /// completed.
    pub fn quantile(&self, p: f64) -> Option<Duration> {
        // The factor tolerates rounding errors such as 0.07 * 100 = 7.000000000000001.
        let rank = (p * self.offered as f64 * (1.0 - 1e-12)).ceil().max(1.0);
        self.at_rank(rank as u64)
    }

    /// Returns the latency with this rank, counted from 1 for the shortest; `None` if fewer messages completed.
    pub fn at_rank(&self, rank: u64) -> Option<Duration> {
        let mut seen = 0;
        let (bucket, _) = self.buckets.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        })?;
        let (min, max) = self.range?;
        Some(bucket.middle().clamp(min, max))
    }

    /// Returns the share of the offered messages that took longer than `latency` or never completed.
    pub fn share_above(&self, latency: Duration) -> Option<f64> {
        let bucket = Bucket::containing(latency);
        let not_above = self.buckets.iter().take_while(|(other, _)| *other <= bucket);
        let above = self.offered - not_above.map(|(_, count)| count).sum::<u64>();
        (self.offered > 0).then(|| above as f64 / self.offered as f64)
    }

    /// Adds the messages of another distribution, as if both had been counted by one recorder.
    pub fn merge(&mut self, other: &Distribution) {
        let Self { offered, completed, total, squares, range, buckets } = self;
        *offered += other.offered;
        *completed += other.completed;
        *total += other.total;
        *squares += other.squares;
        *range = match (*range, other.range) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, another) => one.or(another),
        };
        *buckets = buckets.merged_with(&other.buckets);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Recorder;

    fn counted(nanos: &[u64], missed: usize) -> Distribution {
        let mut recorder = Recorder::new();
        nanos.iter().for_each(|ns| recorder.count_completed(Duration::from_nanos(*ns)));
        (0..missed).for_each(|_| recorder.count_failure());
        recorder.finish()
    }

    #[test]
    fn failures_count_in_every_share_and_quantile() {
        let millis: Vec<u64> = (1..=90).map(|ms| ms * 1_000_000).collect();
        let distribution = counted(&millis, 10);
        let quantile = |p| distribution.quantile(p).map(|q| q.as_millis_f64().round());
        assert_eq!((quantile(0.0), quantile(0.07), quantile(0.5)), (Some(1.0), Some(7.0), Some(50.0)));
        assert_eq!((quantile(0.9), quantile(0.901), quantile(1.0)), (Some(90.0), None, None));
        assert_eq!(distribution.share_above(Duration::from_millis(85)), Some(0.15));
        assert_eq!(distribution.share_above(Duration::from_secs(9)), Some(0.1));
    }

    #[test]
    fn mean_and_deviation_are_exact_for_nearly_equal_latencies() {
        let distribution = counted(&[20_010_240_001, 20_010_240_002, 20_010_240_003], 1);
        assert_eq!(distribution.mean_ms(), Some(20_010.240_002));
        assert_eq!(distribution.deviation_ms(), Some(1e-6));
        assert_eq!(distribution.min(), Some(Duration::from_nanos(20_010_240_001)));
        assert_eq!(distribution.max(), Some(Duration::from_nanos(20_010_240_003)));
    }

    #[test]
    fn distribution_without_completions_has_no_statistics() {
        let distribution = counted(&[], 3);
        assert_eq!((distribution.offered(), distribution.completed()), (3, 0));
        assert_eq!((distribution.mean_ms(), distribution.deviation_ms()), (None, None));
        assert_eq!((distribution.quantile(0.5), distribution.max()), (None, None));
        assert_eq!(Distribution::default().share_above(Duration::ZERO), None);
    }

    /// Generates latencies with a typical shape: many equal, some far out.
    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        let latency = prop_oneof![Just(20_010_240), 20_000_000u64..200_000_000, 0u64..120_000_000_000];
        prop::collection::vec(latency, 0..300)
    }

    proptest! {
        #[test]
        fn merging_equals_counting_together(a in latencies(), b in latencies(), missed in 0usize..5) {
            let mut merged = counted(&a, missed);
            merged.merge(&counted(&b, 1));
            prop_assert_eq!(merged, counted(&[a, b].concat(), missed + 1));
        }

        #[test]
        fn distribution_round_trips_through_json(a in latencies(), missed in 0usize..5) {
            let distribution = counted(&a, missed);
            let json = serde_json::to_string(&distribution).unwrap();
            prop_assert_eq!(serde_json::from_str::<Distribution>(&json).unwrap(), distribution);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_samples(mut a in latencies(), p in 0.0f64..=1.0) {
            prop_assume!(!a.is_empty());
            let quantile = counted(&a, 0).quantile(p).unwrap().as_nanos() as f64;
            a.sort_unstable();
            let exact = a[((p * a.len() as f64).ceil() as usize).max(1) - 1] as f64;
            prop_assert!((quantile - exact).abs() <= exact * 1e-4, "{} for {}", quantile, exact);
        }
    }
}
