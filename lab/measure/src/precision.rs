//! Decides when a point has enough repetitions.

use crate::{CONFIDENCE, Interval};

/// The requested precision: repeat until the mean is known well enough, within limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Minimum number of repetitions.
    pub min: u64,
    /// Maximum number of repetitions.
    pub max: u64,
    /// Largest acceptable half width of the 95 % confidence interval, as a share of the mean.
    pub relative: f64,
}

impl Precision {
    /// Returns whether the repetitions so far, in their order, suffice.
    ///
    /// Call this after each repetition, not after a batch: then the answer does not depend on how many run at the same time.
    pub fn reached(&self, means: &[f64]) -> bool {
        let n = means.len() as u64;
        let precise = || Interval::of(means, CONFIDENCE).is_some_and(|i| i.relative() <= self.relative);
        n >= self.max || (n >= self.min && precise())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_stop_at_the_precision_between_min_and_max() {
        let rule = Precision { min: 3, max: 6, relative: 0.01 };
        assert!(!rule.reached(&[20.0, 20.0]), "too few");
        assert!(rule.reached(&[20.0, 20.0, 20.0]));
        assert!(!rule.reached(&[20.0, 30.0, 25.0, 22.0, 28.0]));
        assert!(rule.reached(&[20.0, 30.0, 25.0, 22.0, 28.0, 21.0]), "no more than max");
    }
}
