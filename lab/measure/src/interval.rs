//! The mean with its confidence interval: Student's t over independent repetitions.

use std::fmt;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Distribution;

/// The default confidence level of intervals: the probability that an interval contains the true value.
pub const CONFIDENCE: f64 = 0.95;

/// A mean with its confidence interval, in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The mean of the samples.
    pub mean: f64,
    /// Half the width of the interval; infinite (JSON: null) with fewer than two samples.
    #[serde(with = "null_is_infinite")]
    pub half_width: f64,
    /// Number of independent samples.
    pub n: u64,
}

/// Returns the two-sided quantile of Student's t distribution with `freedom` degrees of freedom: its absolute value
/// exceeds the quantile with probability `1 - confidence`.
pub fn student_t(confidence: f64, freedom: f64) -> f64 {
    students_t(freedom).inverse_cdf(0.5 + confidence / 2.0)
}

/// Returns Student's t distribution with `freedom` degrees of freedom.
pub(crate) fn students_t(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive")
}

/// Returns the mean and the variance (with the denominator n - 1) of at least two samples.
pub(crate) fn moments(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, squares / (n - 1.0))
}

impl Interval {
    /// Returns the mean of independent samples, one per repetition, with its interval; `None` without
    /// samples.
    ///
    /// ```
    /// use hol_measure::Interval;
    ///
    /// let interval = Interval::of(&[20.3, 20.1, 19.9, 20.4, 20.2], 0.95).unwrap();
    /// assert_eq!(interval.to_string(), "20.18 ± 0.24");
    /// assert!(interval.contains(20.0) && !interval.contains(19.9));
    /// ```
    pub fn of(samples: &[f64], confidence: f64) -> Option<Self> {
        let n = samples.len();
        if n < 2 {
            return samples.first().map(|&mean| Self { mean, half_width: f64::INFINITY, n: 1 });
        }
        let (mean, variance) = moments(samples);
        let error = (variance / n as f64).sqrt();
        Some(Self { mean, half_width: student_t(confidence, n as f64 - 1.0) * error, n: n as u64 })
    }

    /// Returns the confidence interval of the mean under the assumption that a run's latencies (ms) are
    /// independent, as some older publications assumed.
    ///
    /// This interval is too short, because one loss delays many messages. Use it only for comparison with
    /// published intervals.
    pub fn naive(latency: &Distribution, confidence: f64) -> Option<Self> {
        let (mean, n) = (latency.mean_ms()?, latency.completed());
        let half_width = latency.deviation_ms().map_or(f64::INFINITY, |deviation| {
            student_t(confidence, n as f64 - 1.0) * deviation / (n as f64).sqrt()
        });
        Some(Self { mean, half_width, n })
    }

    /// Returns the lower end of the interval.
    pub fn low(&self) -> f64 {
        self.mean - self.half_width
    }

    /// Returns the upper end of the interval.
    pub fn high(&self) -> f64 {
        self.mean + self.half_width
    }

    /// Returns whether `value` is within the interval or at one of its ends.
    pub fn contains(&self, value: f64) -> bool {
        (self.low()..=self.high()).contains(&value)
    }

    /// Returns the half width as a share of the mean.
    pub fn relative_half_width(&self) -> f64 {
        self.half_width / self.mean.abs()
    }
}

impl fmt::Display for Interval {
    /// Writes as many digits as the interval justifies: two digits of the half width, which is rounded up, but at most
    /// six digits of the mean. A half width below a millionth is rounding noise, and is written as 0. In this case,
    /// and without a half width, at most three digits follow the decimal point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.mean.abs().max(1.0).log10().floor();
        let six = (5.0 - whole).clamp(0.0, 3.0) as usize;
        if !self.half_width.is_finite() {
            return write!(f, "{:.six$}", self.mean);
        }
        if self.half_width < 1e-6 {
            return write!(f, "{:.six$} ± 0", self.mean);
        }
        let justified = 1.0 - self.half_width.log10().floor();
        let readable = 5.0 - self.mean.abs().max(self.half_width).log10().floor();
        let digits = justified.min(readable).clamp(0.0, 9.0);
        let half_width = if justified > digits {
            let unit = 10_f64.powf(-digits);
            (self.half_width / unit).ceil() * unit
        } else {
            self.half_width
        };
        let digits = digits as usize;
        write!(f, "{:.digits$} ± {half_width:.digits$}", self.mean)
    }
}

/// Serializes an infinite half width as null, because JSON has no infinity.
mod null_is_infinite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Serializes a number; null if it is infinite.
    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(to)
    }
    /// Reads a number; null means infinity.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recorder;

    // python3 -c "from scipy.stats import t; print([[t.ppf(c, df) for c in (.95, .975, .995)] for df in (1,2,4,9,19,99,7.5)])"
    #[test]
    fn t_quantiles_agree_with_scipy() {
        let scipy = [
            (1.0, [6.313751514800932, 12.706204736432095, 63.65674116287399]),
            (2.0, [2.919985580355516, 4.302652729911275, 9.92484320091807]),
            (4.0, [2.13184678133629, 2.7764451051977987, 4.604094871415897]),
            (7.5, [1.8757474791963804, 2.333039626555376, 3.421422688124047]),
            (9.0, [1.8331129326536335, 2.2621571627409915, 3.2498355440153697]),
            (19.0, [1.729132811521367, 2.093024054408263, 2.860934606449914]),
            (99.0, [1.6603911559963895, 1.9842169515086827, 2.6264054563851857]),
        ];
        for (freedom, expected) in scipy {
            for (confidence, t) in [0.9, 0.95, 0.99].into_iter().zip(expected) {
                // scipy 1.10 itself is off by 2e-9 at four degrees of freedom.
                assert!((student_t(confidence, freedom) / t - 1.0).abs() < 1e-8, "{confidence} {freedom}");
            }
        }
    }

    // python3 -c "import numpy as np; from scipy.stats import t, sem; x=[20.3,20.1,19.9,20.4,20.2]; print(np.mean(x), t.ppf(.975,4)*sem(x))"
    // 20.18 0.23883883880999848
    #[test]
    fn intervals_agree_with_scipy() {
        let interval = Interval::of(&[20.3, 20.1, 19.9, 20.4, 20.2], 0.95).unwrap();
        assert!((interval.mean - 20.18).abs() < 1e-12);
        assert!((interval.half_width - 0.23883883880999848).abs() < 1e-9);
        assert_eq!(interval.to_string(), "20.18 ± 0.24");
        assert!(interval.contains(20.0) && !interval.contains(20.5));
    }

    #[test]
    fn naive_interval_treats_messages_as_independent() {
        let mut recorder = Recorder::new();
        for micros in [20_300, 20_100, 19_900, 20_400, 20_200] {
            recorder.count_completed(hol_base::Duration::from_micros(micros));
        }
        let interval = Interval::naive(&recorder.finish(), 0.95).unwrap();
        assert!((interval.half_width - 0.23883883880999848).abs() < 1e-9);
    }

    // python3 -c "from scipy.stats import t; print(t.ppf(.975, 1))"; the deviation of 1 and 3 is the root of 2.
    #[test]
    fn two_repetitions_have_a_finite_interval() {
        let interval = Interval::of(&[1.0, 3.0], 0.95).unwrap();
        assert!((interval.half_width - 12.706204736432095).abs() < 1e-9, "{interval:?}");
        assert_eq!(Interval { mean: -20.0, half_width: 5.0, n: 2 }.relative_half_width(), 0.25);
    }

    #[test]
    fn one_repetition_has_an_infinite_interval() {
        let single = Interval::of(&[20.5], 0.95).unwrap();
        assert!(single.contains(1e300) && single.contains(-1e300));
        assert_eq!(single.to_string(), "20.500");
        let json = serde_json::to_string(&single).unwrap();
        assert_eq!(json, r#"{"mean":20.5,"half_width":null,"n":1}"#);
        assert_eq!(serde_json::from_str::<Interval>(&json).unwrap(), single);
        assert_eq!(Interval::of(&[], 0.95), None);
    }

    #[test]
    fn interval_is_rounded_to_two_digits_of_its_half_width() {
        let shown = |mean, half_width| Interval { mean, half_width, n: 5 }.to_string();
        assert_eq!(shown(117.23456, 3.4567), "117.2 ± 3.5");
        assert_eq!(shown(117.23456, 34.567), "117 ± 35");
        assert_eq!(shown(20.0102, 0.000456), "20.0102 ± 0.0005");
        assert_eq!(shown(1598.9461, 0.0023), "1598.95 ± 0.01");
        assert_eq!(shown(8_123_456.0, 0.5), "8123456 ± 1");
        assert_eq!(shown(20.0, 0.0), "20.000 ± 0");
    }
}
