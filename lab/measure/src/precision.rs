//! Decides when a point has enough repetitions.

use crate::{CONFIDENCE, Interval};

/// The precision that the mean over the repetitions must reach, and the limits for the number of repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Minimum number of repetitions.
    pub min: u64,
    /// Maximum number of repetitions.
    pub max: u64,
    /// Largest acceptable half width of the mean's 95 % confidence interval, as a share of the mean.
    pub relative: f64,
}

impl Precision {
    /// Returns whether the repetitions so far suffice; `means` is in the order of the repetitions.
    ///
    /// Call this function after each repetition, not after a batch of them. Then the result does not depend on how many
    /// repetitions run at the same time.
    pub fn is_reached(&self, means: &[f64]) -> bool {
        let n = means.len() as u64;
        let precise =
            || Interval::of(means, CONFIDENCE).is_some_and(|i| i.relative_half_width() <= self.relative);
        n >= self.max || (n >= self.min && precise())
    }
}

#[cfg(test)]
mod tests {
    use hol_base::Seed;

    use super::*;

    /// Returns the smallest share of intervals that contain the mean, for normal repetitions of several deviations, if at least `min` and
    /// up to ten are performed until the mean is known to 1 %.
    fn worst_coverage(min: u64) -> f64 {
        const TRIALS: u32 = 4000;
        let rule = Precision { min, max: 10, relative: 0.01 };
        let mut rng = Seed(1).derive("coverage").rng();
        let mut coverage = |deviation: f64| {
            let mut holds = 0;
            for _ in 0..TRIALS {
                let mut means = Vec::new();
                while !rule.is_reached(&means) {
                    means.push(1.0 + deviation * rng.normal());
                }
                let interval = Interval::of(&means, CONFIDENCE).unwrap();
                holds += u32::from((interval.mean - 1.0).abs() <= interval.half_width);
            }
            f64::from(holds) / f64::from(TRIALS)
        };
        [0.003, 0.006, 0.008, 0.01, 0.012, 0.014, 0.02, 0.03]
            .map(&mut coverage)
            .into_iter()
            .fold(1.0, f64::min)
    }

    /// A point that stops because its interval happens to be narrow has too narrow an interval; docs/statistics.md has the table.
    #[test]
    fn six_repetitions_are_enough_to_look_at_the_precision_after_each() {
        let [three, six] = [3, 6].map(worst_coverage);
        assert!(three < 0.925 && six > 0.93, "{three} {six}");
    }

    #[test]
    fn repetitions_stop_at_the_precision_between_min_and_max() {
        let rule = Precision { min: 3, max: 6, relative: 0.01 };
        assert!(!rule.is_reached(&[20.0, 20.0]), "too few");
        assert!(rule.is_reached(&[20.0, 20.0, 20.0]));
        assert!(!rule.is_reached(&[20.0, 30.0, 25.0, 22.0, 28.0]));
        assert!(rule.is_reached(&[20.0, 30.0, 25.0, 22.0, 28.0, 21.0]), "no more than max");
    }
}
