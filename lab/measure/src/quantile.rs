//! Confidence intervals of quantiles and of the tail of a distribution.
//!
//! These intervals treat messages as independent. One loss delays many messages of a run, so within a run
//! the intervals are too narrow; for a claim, use [`crate::Interval`] over repetitions.

use hol_base::Duration;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

use crate::Distribution;

/// The confidence interval of a quantile; an end is `None` if the samples do not bound it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuantileInterval {
    /// The lower end; `None` if the samples do not bound it.
    pub low: Option<Duration>,
    /// The upper end; `None` if the samples do not bound it, or if it falls on a message that never completed.
    pub high: Option<Duration>,
}

/// A point at which the complementary cumulative distribution (CCDF) drops: a share of the offered messages takes
/// longer than `latency`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CcdfPoint {
    /// The latency that a share of the messages exceeds.
    pub latency: Duration,
    /// The share of the offered messages that took longer or never completed.
    pub share: f64,
    /// Lower end of the share's Wilson interval.
    pub low: f64,
    /// Upper end of the share's Wilson interval.
    pub high: f64,
}

/// Minimum number of messages in the tail of a curve; a tail with fewer messages would be noise.
const MIN_TAIL: u64 = 10;

impl Distribution {
    /// Returns the confidence interval of the quantile `p`. Its ends are order statistics, chosen by the binomial
    /// distribution.
    pub fn quantile_interval(&self, p: f64, confidence: f64) -> QuantileInterval {
        let outside = (1.0 - confidence) / 2.0;
        let Some(below) = Binomial::new(p, self.offered()).ok().filter(|_| self.offered() > 0) else {
            return QuantileInterval { low: None, high: None };
        };
        let low = below.inverse_cdf(outside);
        let high = below.inverse_cdf(1.0 - outside) + 1;
        QuantileInterval { low: if low > 0 { self.at_rank(low) } else { None }, high: self.at_rank(high) }
    }

    /// Returns the complementary cumulative distribution in ascending order of latency, with `per_decade` points
    /// per factor of ten in the share. The curve ends where fewer than ten messages remain. It is a step function,
    /// so its last point repeats the share of the point before.
    pub fn ccdf(&self, per_decade: u32, confidence: f64) -> Vec<CcdfPoint> {
        let step = 10f64.powf(-1.0 / f64::from(per_decade));
        let z = Normal::standard().inverse_cdf(0.5 + confidence / 2.0);
        let (mut points, mut above, mut last) = (Vec::new(), self.offered(), f64::INFINITY);
        for (bucket, count) in self.buckets.iter() {
            above -= count;
            if above < MIN_TAIL {
                points.extend(points.last().map(|held| CcdfPoint { latency: bucket.middle(), ..*held }));
                break;
            }
            if above as f64 <= last * step {
                last = above as f64;
                let share = last / self.offered() as f64;
                let (low, high) = wilson(share, self.offered() as f64, z);
                points.push(CcdfPoint { latency: bucket.middle(), share, low, high });
            }
        }
        points
    }
}

/// Returns the score interval of a `share` of `n` trials (Wilson 1927); `z` is the quantile of the normal
/// distribution. The interval is never empty, and always within 0 to 1.
pub(crate) fn wilson(share: f64, n: f64, z: f64) -> (f64, f64) {
    let centre = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    ((centre - half) / scale, (centre + half) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recorder;

    fn counted(millis: impl IntoIterator<Item = u64>) -> Distribution {
        let mut recorder = Recorder::new();
        millis.into_iter().for_each(|ms| recorder.count_completed(Duration::from_millis(ms)));
        recorder.finish()
    }

    fn ms(latency: Option<Duration>) -> f64 {
        latency.unwrap().as_millis_f64().round()
    }

    // python3 -c "from scipy.stats import binom; print(binom.ppf([.025,.975],1000,.9), binom.ppf([.025,.975],100,.5))"
    // [881. 918.] [40. 60.]
    #[test]
    fn quantile_intervals_end_at_binomial_ranks() {
        let interval = counted(1..=1000).quantile_interval(0.9, 0.95);
        assert_eq!((ms(interval.low), ms(interval.high)), (881.0, 919.0));
        let interval = counted(1..=100).quantile_interval(0.5, 0.95);
        assert_eq!((ms(interval.low), ms(interval.high)), (40.0, 61.0));
    }

    #[test]
    fn quantile_interval_is_open_with_too_few_messages() {
        let interval = counted(1..=100).quantile_interval(0.999, 0.95);
        assert_eq!(interval.high, None);
        assert!(interval.low.is_some());
        assert_eq!(Distribution::default().quantile_interval(0.5, 0.95).low, None);
    }

    // By definition the ends solve |share - s| = z sqrt(s (1 - s) / n).
    #[test]
    fn wilson_interval_satisfies_the_score_equation() {
        let (share, n, z) = (0.02, 500.0, 1.96);
        let (low, high) = wilson(share, n, z);
        for end in [low, high] {
            assert!(((share - end).abs() - z * (end * (1.0 - end) / n).sqrt()).abs() < 1e-12);
        }
    }

    #[test]
    fn the_ccdf_stops_where_ten_messages_remain() {
        let points = counted(1..=10_000).ccdf(10, 0.95);
        let shares: Vec<f64> = points.iter().map(|p| p.share).collect();
        assert_eq!(shares[0], 0.9999);
        let (end, steps) = shares.split_last().unwrap();
        assert!(steps.windows(2).all(|pair| pair[1] <= pair[0] * 0.795), "{shares:?}");
        assert_eq!((Some(end), ms(points.last().map(|end| end.latency))), (steps.last(), 9991.0));
        assert!(*shares.last().unwrap() >= 0.001 && (25..=31).contains(&shares.len()), "{shares:?}");
        assert!(points.iter().all(|p| p.low < p.share && p.share < p.high));
    }

    #[test]
    fn incomplete_messages_count_in_the_tail() {
        let mut recorder = Recorder::new();
        (0..80).for_each(|_| recorder.count_completed(Duration::from_millis(20)));
        (0..20).for_each(|_| recorder.count_failure());
        let points = recorder.finish().ccdf(10, 0.95);
        assert_eq!(points.len(), 1);
        assert_eq!(points[0].share, 0.2);
    }
}
