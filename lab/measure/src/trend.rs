//! Tests whether a curve only falls or only rises: paired tests between neighbours, and a monotonic fit.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::compare::{Verdict, adjust_by_holm, compare_paired};

/// The direction in which a curve is claimed to move along the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The curve never falls along the axis.
    NonDecreasing,
    /// The curve never rises along the axis.
    NonIncreasing,
}

/// The result of testing whether a curve moves in a claimed direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// The steps whose change contradicts the direction significantly, after correction for the number of steps
    /// (Holm). Step `i` leads from level `i` to level `i + 1`.
    pub violations: Vec<usize>,
    /// p-value of the sign test between the first and the last level: the probability that, by chance, at least
    /// this many repetitions change in the claimed direction.
    pub p: f64,
    /// The curve that is nearest to the means and moves only in the claimed direction.
    pub fit: Vec<f64>,
}

impl Trend {
    /// Tests `levels`: one slice of repetitions for each value on the axis, paired by seed.
    ///
    /// # Panics
    /// If the levels have different numbers of repetitions, or none.
    pub fn of(levels: &[Vec<f64>], direction: Direction, confidence: f64) -> Self {
        let wrong = match direction {
            Direction::NonDecreasing => Verdict::Faster,
            Direction::NonIncreasing => Verdict::Slower,
        };
        let steps: Vec<_> =
            levels.windows(2).map(|pair| compare_paired(&pair[1], &pair[0], 0.0, confidence)).collect();
        let p = adjust_by_holm(&steps.iter().map(|step| step.p).collect::<Vec<_>>());
        let violations =
            (0..steps.len()).filter(|&i| steps[i].verdict == wrong && p[i] < 1.0 - confidence).collect();
        let means: Vec<f64> = levels.iter().map(|l| l.iter().sum::<f64>() / l.len() as f64).collect();
        Self { violations, p: sign_test(levels, direction), fit: isotonic_fit(&means, direction) }
    }

    /// Returns whether no step contradicts the direction significantly.
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Returns the p-value of the one-sided sign test between the two ends of the axis; repetitions without a
/// difference are left out.
fn sign_test(levels: &[Vec<f64>], direction: Direction) -> f64 {
    let [first, .., last] = levels else { return 1.0 };
    let right = |from: f64, to: f64| match direction {
        Direction::NonDecreasing => to > from,
        Direction::NonIncreasing => to < from,
    };
    let moved: Vec<bool> =
        first.iter().zip(last).filter(|(a, b)| a != b).map(|(a, b)| right(*a, *b)).collect();
    let agree = moved.iter().filter(|agrees| **agrees).count() as u64;
    match Binomial::new(0.5, moved.len() as u64) {
        Ok(chance) if agree > 0 => chance.sf(agree - 1),
        _ => 1.0,
    }
}

/// Returns the nearest curve, by least squares, that never moves against `direction` (pool adjacent violators).
pub fn isotonic_fit(values: &[f64], direction: Direction) -> Vec<f64> {
    let sign = if direction == Direction::NonDecreasing { 1.0 } else { -1.0 };
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in values {
        let (mut sum, mut n) = (sign * value, 1);
        while let Some((before, m)) = pools.pop_if(|(before, m)| *before * n as f64 > sum * *m as f64) {
            (sum, n) = (sum + before, n + m);
        }
        pools.push((sum, n));
    }
    pools.into_iter().flat_map(|(sum, n)| std::iter::repeat_n(sign * sum / n as f64, n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(mean: f64) -> Vec<f64> {
        [-0.3, 0.1, 0.2, -0.1, 0.05, 0.05, -0.2, 0.2].iter().map(|noise| mean + noise).collect()
    }

    /// Returns levels with the same noise in different orders, so that their differences vary.
    fn levels(means: &[f64]) -> Vec<Vec<f64>> {
        let turned = |(i, mean): (usize, &f64)| {
            let mut level = noisy(*mean);
            level.rotate_left(i % 8);
            level
        };
        means.iter().enumerate().map(turned).collect()
    }

    #[test]
    fn a_falling_curve_with_noise_is_non_increasing_only() {
        let curve = levels(&[23.0, 21.8, 21.2, 21.0, 21.02]);
        let falls = Trend::of(&curve, Direction::NonIncreasing, 0.95);
        assert!(falls.holds());
        for (fit, mean) in falls.fit.iter().zip([23.0, 21.8, 21.2, 21.01, 21.01]) {
            assert!((fit - mean).abs() < 1e-9, "{:?}", falls.fit);
        }
        assert!(falls.p < 0.005, "8 of 8 repetitions: 1/256, not {}", falls.p);
        let rises = Trend::of(&curve, Direction::NonDecreasing, 0.95);
        assert_eq!(rises.violations, [0, 1]);
        assert_eq!(rises.p, 1.0);
    }

    #[test]
    fn isotonic_fit_pools_violating_neighbours() {
        assert_eq!(isotonic_fit(&[1.0, 3.0, 2.0, 4.0], Direction::NonDecreasing), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(isotonic_fit(&[1.0, 3.0, 2.0, 0.0], Direction::NonIncreasing), [2.0, 2.0, 2.0, 0.0]);
        assert_eq!(isotonic_fit(&[3.0, 2.0, 1.0], Direction::NonDecreasing), [2.0, 2.0, 2.0]);
        assert!(isotonic_fit(&[], Direction::NonDecreasing).is_empty());
    }

    // python3 -c "from scipy.stats import binomtest; print(binomtest(7, 9, .5, alternative='greater').pvalue)"
    // 0.08984375
    #[test]
    fn the_sign_test_agrees_with_scipy() {
        let first = vec![0.0; 10];
        let last = vec![1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 0.0];
        let p = sign_test(&[first, last], Direction::NonDecreasing);
        assert!((p - 0.08984375).abs() < 1e-12, "{p}");
    }

    #[test]
    fn violation_needs_significance_over_the_family() {
        // Differences 0.5, -0.1, 0.3, 0.6, 0.2: python3 -c "from scipy.stats import ttest_1samp as t; print(t([.5,-.1,.3,.6,.2],0).pvalue)"
        // scipy 1.17.1: 0.0700, which is significant at 90 %, but not at 95 %; with two such steps Holm doubles p.
        let level = |by: f64| [0.5, -0.1, 0.3, 0.6, 0.2].iter().map(|d| 20.0 + by * d).collect::<Vec<f64>>();
        let holds = |levels: &[f64], confidence| {
            let levels: Vec<Vec<f64>> = levels.iter().map(|by| level(*by)).collect();
            Trend::of(&levels, Direction::NonIncreasing, confidence).holds()
        };
        assert!(holds(&[0.0, 1.0], 0.95) && !holds(&[0.0, 1.0], 0.9));
        assert!(holds(&[0.0, 1.0, 2.0], 0.9) && !holds(&[0.0, 1.0, 2.0], 0.85));
    }
}
