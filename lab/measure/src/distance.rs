//! Distances between two distributions.

use crate::Distribution;
use crate::bucket::Bucket;

impl Distribution {
    /// Returns the Kolmogorov–Smirnov distance: the largest difference between the two cumulative distributions at
    /// any latency. Returns `None` if one of them has no messages.
    ///
    /// The distance depends on how many messages differ, not on how much they differ: if all latencies of two
    /// worlds differ by 1 µs, the distance is 1.
    pub fn ks_distance(&self, other: &Distribution) -> Option<f64> {
        let (n, m) = (self.offered() as f64, other.offered() as f64);
        let gap = |(_, a, b): (Bucket, u64, u64)| (a as f64 / n - b as f64 / m).abs();
        (n > 0.0 && m > 0.0).then(|| self.steps(other).into_iter().map(gap).fold(0.0, f64::max))
    }

    /// Returns the Wasserstein-1 distance in ms: the smallest mean change of the latencies that turns one
    /// distribution into the other. It is never less than the difference of the means. Returns `None` if one
    /// distribution has no completed message.
    pub fn wasserstein_ms(&self, other: &Distribution) -> Option<f64> {
        let (n, m) = (self.completed() as f64, other.completed() as f64);
        let steps = self.steps(other);
        let area = |pair: &[(Bucket, u64, u64)]| {
            let (from, a, b) = pair[0];
            let width = pair[1].0.middle().as_millis_f64() - from.middle().as_millis_f64();
            (a as f64 / n - b as f64 / m).abs() * width
        };
        (n > 0.0 && m > 0.0).then(|| steps.windows(2).map(area).sum())
    }

    /// Returns every latency of either distribution, in ascending order. With each comes the number of messages of
    /// either distribution that took no longer.
    fn steps(&self, other: &Distribution) -> Vec<(Bucket, u64, u64)> {
        let (mut ours, mut theirs) = (self.buckets.iter().peekable(), other.buckets.iter().peekable());
        let (mut a, mut b) = (0, 0);
        let mut steps = Vec::new();
        while let Some(at) = [ours.peek(), theirs.peek()].into_iter().flatten().map(|(b, _)| *b).min() {
            a += ours.next_if(|(bucket, _)| *bucket == at).map_or(0, |(_, count)| count);
            b += theirs.next_if(|(bucket, _)| *bucket == at).map_or(0, |(_, count)| count);
            steps.push((at, a, b));
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;

    use super::*;
    use crate::Recorder;

    fn counted(millis: impl IntoIterator<Item = u64>) -> Distribution {
        let mut recorder = Recorder::new();
        millis.into_iter().for_each(|ms| recorder.count_completed(Duration::from_millis(ms)));
        recorder.finish()
    }

    // python3 -c "from scipy.stats import ks_2samp; print(ks_2samp(range(1,101), range(21,141)).statistic)"
    // 0.3333333333333333
    #[test]
    fn ks_distance_agrees_with_scipy() {
        let (a, b) = (counted(1..=100), counted(21..=140));
        assert!((a.ks_distance(&b).unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(a.ks_distance(&a), Some(0.0));
        assert_eq!(a.ks_distance(&Distribution::default()), None);
    }

    // python3 -c "from scipy.stats import wasserstein_distance as w
    // print(w(range(1,101), range(21,141)), w([20,20,20,220], [20,50,50]), w([20,21], [40]))"
    // 29.999999999999993 55.0 19.5
    #[test]
    fn the_wasserstein_distance_agrees_with_scipy() {
        for (a, b, scipy) in [
            (counted(1..=100), counted(21..=140), 30.0),
            (counted([20, 20, 20, 220]), counted([20, 50, 50]), 55.0),
            (counted([20, 21]), counted([40]), 19.5),
        ] {
            let distance = a.wasserstein_ms(&b).unwrap();
            // Latencies are counted to four digits.
            assert!((distance / scipy - 1.0).abs() < 1e-4, "{distance} for {scipy}");
            assert_eq!(b.wasserstein_ms(&a), Some(distance));
        }
    }

    #[test]
    fn distance_to_itself_is_zero_and_to_an_empty_distribution_unknown() {
        let a = counted(1..=100);
        assert_eq!(a.wasserstein_ms(&a), Some(0.0));
        assert_eq!(a.wasserstein_ms(&Distribution::default()), None);
    }
}
