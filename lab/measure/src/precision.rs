//! When to stop repeating.

use crate::{CONFIDENCE, Interval};

/// Repeat until the mean is known well enough, within bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// Repetitions at least.
    pub min: u64,
    /// Repetitions at most.
    pub max: u64,
    /// Half width of the 95 % interval, as a share of the mean, that is good enough.
    pub relative: f64,
}

impl Precision {
    /// True once the repetitions so far, in their order, suffice.
    ///
    /// Ask after each repetition in turn, not when a batch of them is done: then the answer does not
    /// depend on how many run at the same time.
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
    fn repetitions_stop_at_the_precision_but_within_their_bounds() {
        let rule = Precision { min: 3, max: 6, relative: 0.01 };
        assert!(!rule.reached(&[20.0, 20.0]), "too few");
        assert!(rule.reached(&[20.0, 20.0, 20.0]));
        assert!(!rule.reached(&[20.0, 30.0, 25.0, 22.0, 28.0]));
        assert!(rule.reached(&[20.0, 30.0, 25.0, 22.0, 28.0, 21.0]), "no more than max");
    }
}
