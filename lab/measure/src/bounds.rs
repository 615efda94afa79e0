//! An estimate with a confidence interval that need not be symmetric.

use std::fmt;

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

use crate::Allowance;
use crate::bootstrap::bca_of_mean;
use crate::interval::Interval;
use crate::quantile::wilson;

/// Minimum number of repetitions for a bootstrap interval. With fewer repetitions, the interval is Student's t.
const MIN_BOOTSTRAP_REPETITIONS: usize = 8;
/// Ratio of the longer side of an interval to its shorter side above which the interval is not written with ±.
const LOPSIDED_RATIO: f64 = 1.5;

/// An estimate with the ends of its confidence interval, in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// The estimate.
    pub value: f64,
    /// The lower end; infinite if the samples do not bound it.
    pub low: f64,
    /// The upper end; infinite if the samples do not bound it.
    pub high: f64,
}

impl ConfidenceInterval {
    /// Returns the mean of independent repetitions with its confidence interval; `None` without repetitions.
    ///
    /// The interval is Student's t, unless the repetitions are so skewed that a symmetric interval misleads:
    /// then it is the bias-corrected accelerated bootstrap (Efron 1987).
    ///
    /// ```
    /// use hol_measure::ConfidenceInterval;
    ///
    /// // One of ten runs met a timeout: the mean may be much higher, and not much lower.
    /// let samples = [20.3, 20.1, 19.9, 20.4, 20.2, 20.0, 20.3, 19.8, 20.2, 41.7];
    /// let mean = ConfidenceInterval::of_mean(&samples, 0.95).unwrap();
    /// assert!(mean.is_asymmetric() && mean.high - mean.value > 3.0 * (mean.value - mean.low));
    /// ```
    pub fn of_mean(samples: &[f64], confidence: f64) -> Option<Self> {
        let symmetric = Self::from(Interval::of(samples, confidence)?);
        let ends =
            if samples.len() < MIN_BOOTSTRAP_REPETITIONS { None } else { bca_of_mean(samples, confidence) };
        let skewed = ends.map(|(low, high)| Self { low, high, ..symmetric });
        Some(skewed.filter(Self::is_asymmetric).unwrap_or(symmetric))
    }

    /// Limits the ends to the possible values of the quantity, `min` to `max`. Infinite ends stay infinite.
    #[must_use]
    pub fn clamp_to(self, min: f64, max: f64) -> Self {
        let limit = |end: f64| if end.is_finite() { end.clamp(min, max) } else { end };
        Self { value: self.value, low: limit(self.low), high: limit(self.high) }
    }

    /// Returns the interval with a higher upper end, which allows for rare events that do not occur in the
    /// samples.
    pub fn with_allowance(self, unseen: Allowance) -> Self {
        let above = (self.high - self.value).hypot(unseen.half_width);
        Self { high: self.value + unseen.expected + above, ..self }
    }

    /// Returns the median of independent repetitions with its confidence interval. The ends of the interval are order
    /// statistics, chosen by the binomial distribution. `None` without repetitions.
    pub fn of_median(samples: &[f64], confidence: f64) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let value = quantile(&sorted, 0.5)?;
        let below = Binomial::new(0.5, n as u64).ok()?.inverse_cdf((1.0 - confidence) / 2.0) as usize;
        let ends = below.checked_sub(1).map(|at| (sorted[at], sorted[n - 1 - at]));
        let (low, high) = ends.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        Some(Self { value, low, high })
    }

    /// Returns a share of independent trials with its score interval (Wilson); `None` without trials.
    pub fn of_share(successes: u64, trials: f64, confidence: f64) -> Option<Self> {
        let value = successes as f64 / trials;
        let z = Normal::standard().inverse_cdf(0.5 + confidence / 2.0);
        let (low, high) = wilson(value, trials, z);
        (trials > 0.0).then_some(Self { value, low, high })
    }

    /// Returns whether a value is not outside the interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns whether one end of the interval is much farther from the estimate than the other.
    pub fn is_asymmetric(&self) -> bool {
        let (below, above) = (self.value - self.low, self.high - self.value);
        below.max(above) > LOPSIDED_RATIO * below.min(above)
    }

    fn is_finite(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }
}

/// Returns the quantile `p` of sorted samples, interpolated between neighbouring samples; `None` without samples.
pub fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let place = p * (sorted.len().checked_sub(1)?) as f64;
    let (at, share) = (place.floor() as usize, place.fract());
    let next = sorted[(at + 1).min(sorted.len() - 1)];
    // Two infinite values have no difference, and a share of 0 of an infinite one is no number.
    Some(if share == 0.0 || sorted[at] == next {
        sorted[at]
    } else {
        sorted[at] + share * (next - sorted[at])
    })
}

impl From<Interval> for ConfidenceInterval {
    fn from(interval: Interval) -> Self {
        Self { value: interval.mean, low: interval.low(), high: interval.high() }
    }
}

impl fmt::Display for ConfidenceInterval {
    /// Writes `21.9 ± 2.6` or, if the interval is asymmetric, `22.7 (21.1 to 28.5)`. Also writes the second form if `±`
    /// would include negative values that the interval does not contain. The number of digits depends on the end that
    /// is nearer to the estimate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, low, high } = *self;
        let half_width = (high - low) / 2.0;
        let is_cut_at_zero = low >= 0.0 && half_width > value;
        if !self.is_finite() || !self.is_asymmetric() && !is_cut_at_zero {
            return Interval { mean: value, half_width, n: 2 }.fmt(f);
        }
        let nearer = (value - low).min(high - value).max((high - low) / 100.0);
        let readable = 5.0 - value.abs().max(high.abs()).log10().floor();
        let digits = (1.0 - nearer.log10().floor()).min(readable).clamp(0.0, 9.0) as usize;
        write!(f, "{value:.digits$} ({low:.digits$} to {high:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SCTP-1024 at 1 % loss: nine similar runs, and one in which the send buffer was full.
    const SKEWED: [f64; 10] = [21.0, 21.05, 21.1, 21.12, 21.15, 21.2, 21.22, 21.25, 21.3, 35.9];

    #[test]
    fn lopsided_interval_has_at_most_six_digits() {
        let bounds = ConfidenceInterval { value: 280.773_61, low: 280.773_6, high: 281.179_4 };
        assert_eq!(bounds.to_string(), "280.774 (280.774 to 281.179)");
    }

    #[test]
    fn interval_ends_at_the_limits_of_its_quantity() {
        let connect_ms = ConfidenceInterval::of_mean(&[12.0, 14.0, 1033.0], 0.95).unwrap();
        assert_eq!(connect_ms.clamp_to(0.0, f64::INFINITY).to_string(), "353 (0 to 1816)");
        let percent = ConfidenceInterval::of_mean(&[100.0, 97.0, 85.0], 0.95).unwrap();
        assert_eq!(percent.clamp_to(0.0, 100.0).to_string(), "94.0 (74.3 to 100.0)");
        let one = ConfidenceInterval::of_mean(&[3.0], 0.95).unwrap();
        assert_eq!(one.clamp_to(0.0, 100.0), one, "one run has no interval");
    }

    #[test]
    fn interval_with_an_outlier_is_printed_with_both_ends() {
        assert_eq!(Interval::of(&SKEWED, 0.95).unwrap().to_string(), "22.6 ± 3.3");
        let bounds = ConfidenceInterval::of_mean(&SKEWED, 0.95).unwrap();
        assert!(bounds.to_string().starts_with("22.6 (21.1 to 28."), "{bounds}");
    }

    #[test]
    fn symmetric_samples_keep_the_student_interval() {
        let even = [20.3, 20.1, 19.9, 20.4, 20.2, 20.0, 20.15, 20.25];
        let t = Interval::of(&even, 0.95).unwrap();
        assert_eq!(ConfidenceInterval::of_mean(&even, 0.95), Some(t.into()));
        assert_eq!(ConfidenceInterval::of_mean(&even, 0.95).unwrap().to_string(), t.to_string());
        assert_eq!(
            ConfidenceInterval::of_mean(&SKEWED[5..], 0.95),
            Interval::of(&SKEWED[5..], 0.95).map(ConfidenceInterval::from)
        );
        assert_eq!(ConfidenceInterval::of_mean(&[20.0; 9], 0.95).unwrap().to_string(), "20.000 ± 0");
        assert_eq!(ConfidenceInterval::of_mean(&[], 0.95), None);
    }

    // python3 -c "from scipy.stats import quantile_test as q
    // for n in (5, 6, 8, 10, 20, 40): print(q(range(1, n + 1), p=.5).confidence_interval(.95))"
    // nan nan, 1 6, 1 8, 2 9, 6 15, 14 27
    #[test]
    fn interval_of_the_median_agrees_with_scipy() {
        let ends = |n: u32| {
            let bounds =
                ConfidenceInterval::of_median(&(1..=n).map(f64::from).collect::<Vec<_>>(), 0.95).unwrap();
            (bounds.low, bounds.high)
        };
        assert_eq!(ends(5), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(
            [6, 8, 10, 20, 40].map(ends),
            [(1.0, 6.0), (1.0, 8.0), (2.0, 9.0), (6.0, 15.0), (14.0, 27.0)]
        );
    }

    #[test]
    fn infinite_run_does_not_change_the_median() {
        let mut runs = SKEWED;
        runs[9] = f64::INFINITY;
        let median = ConfidenceInterval::of_median(&runs, 0.95).unwrap();
        assert!((median.value - 21.175).abs() < 1e-9, "{median}");
        assert_eq!((median.low, median.high), (21.05, 21.3));
    }

    // python3 -c "import numpy as np; print(np.quantile([1, 2, 4, 8], [0, .25, .5, .9, 1]))"
    // [1. 1.75 3. 6.8 8.]
    #[test]
    fn quantiles_agree_with_numpy() {
        let at = |p| quantile(&[1.0, 2.0, 4.0, 8.0], p).unwrap();
        for (p, numpy) in [(0.0, 1.0), (0.25, 1.75), (0.5, 3.0), (0.9, 6.8), (1.0, 8.0)] {
            assert!((at(p) - numpy).abs() < 1e-12, "{p}");
        }
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[f64::INFINITY; 2], 0.5), Some(f64::INFINITY));
    }

    // python3 -c "from scipy.stats import binomtest as b
    // for k, n in ((3, 40), (40, 40), (0, 7)): print(b(k, n).proportion_ci(.95, method='wilson'))"
    // scipy 1.17.1: 0.0258360257 0.1986423352, 0.9123783988 1.0, 0.0 0.3543304351
    #[test]
    fn interval_of_a_share_agrees_with_scipy() {
        for (have, of, value, low, high) in [
            (3, 40.0, 0.075, 0.025836025774588198, 0.19864233524310543),
            (40, 40.0, 1.0, 0.9123783988027133, 1.0),
            (0, 7.0, 0.0, 0.0, 0.35433043506668743),
        ] {
            let bounds = ConfidenceInterval::of_share(have, of, 0.95).unwrap();
            assert_eq!(bounds.value, value);
            assert!((bounds.low - low).abs() < 1e-9 && (bounds.high - high).abs() < 1e-9, "{bounds:?}");
        }
        assert_eq!(ConfidenceInterval::of_share(0, 0.0, 0.95), None);
    }

    #[test]
    fn interval_of_a_quantity_without_negative_values_is_printed_without_them() {
        let text = |low, high| ConfidenceInterval { value: 31.0, low, high }.to_string();
        assert_eq!(text(0.0, 76.0), "31 (0 to 76)");
        assert_eq!(text(-14.0, 76.0), "31 ± 45");
        assert_eq!(text(2.0, 60.0), "31 ± 29");
    }

    #[test]
    fn interval_is_lopsided_if_one_side_is_half_as_long_again() {
        let is_asymmetric = |below, above| {
            ConfidenceInterval { value: 10.0, low: 10.0 - below, high: 10.0 + above }.is_asymmetric()
        };
        assert!(!is_asymmetric(4.0, 6.0) && !is_asymmetric(6.0, 4.0));
        assert!(is_asymmetric(4.0, 6.5) && is_asymmetric(6.5, 4.0));
        assert!(!is_asymmetric(0.25, 0.375) && is_asymmetric(0.25, 0.5));
    }

    #[test]
    fn bootstrap_is_used_from_eight_repetitions_on() {
        let skewed = |n: usize| {
            ConfidenceInterval::of_mean(&SKEWED[SKEWED.len() - n..], 0.95).unwrap().is_asymmetric()
        };
        assert!(skewed(8) && !skewed(7));
    }
}
