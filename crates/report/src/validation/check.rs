//! One number in both worlds, and whether they agree.

use hol_measure::Interval;

/// How far the model may be from the kernel: the greater of the two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// In the number's unit.
    pub absolute: f64,
    /// As a share of the kernel's number.
    pub share: f64,
}

/// For means.
pub const MEAN: Tolerance = Tolerance { absolute: 0.5, share: 0.03 };
/// For 99 % quantiles.
pub const P99: Tolerance = Tolerance { absolute: 1.0, share: 0.05 };
/// For the throughput of what is alone on its line.
pub const ALONE: Tolerance = Tolerance { absolute: 0.0, share: 0.03 };
/// For the throughput of what competes.
pub const SHARED: Tolerance = Tolerance { absolute: 0.0, share: 0.1 };

/// A number in both worlds, with 95 % intervals over the repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    /// In the kernel.
    pub kernel: Interval,
    /// In the model.
    pub model: Interval,
    /// How far the two may be apart.
    pub tolerance: f64,
}

impl Check {
    /// Holds the model to the kernel.
    pub fn new(kernel: Interval, model: Interval, tolerance: Tolerance) -> Self {
        let Tolerance { absolute, share } = tolerance;
        Self { kernel, model, tolerance: absolute.max(share * kernel.mean) }
    }

    /// Model less kernel.
    pub fn difference(&self) -> f64 {
        self.model.mean - self.kernel.mean
    }

    /// The difference in units of the tolerance.
    pub fn excess(&self) -> f64 {
        self.difference().abs() / self.tolerance
    }

    /// Within the tolerance, or inside the kernel's own interval.
    pub fn agrees(&self) -> bool {
        self.excess() <= 1.0 || self.kernel.contains(self.model.mean)
    }

    /// Whether the kernel's repetitions leave more open than the tolerance: then neither verdict means much.
    pub fn says_little(&self) -> bool {
        self.uncertainty() > self.tolerance
    }

    /// How many repetitions would leave no more open than the tolerance, going by those that there are; `None` with
    /// fewer than two.
    pub fn repetitions_needed(&self) -> Option<u64> {
        let ratio = self.uncertainty() / self.tolerance;
        ratio.is_finite().then(|| (self.kernel.n as f64 * (ratio * ratio).max(1.0)).ceil() as u64)
    }

    /// Half the width of the kernel's interval, or of the one to expect by the model's many repetitions, if that is
    /// wider: eight may all have missed what one in twenty meets.
    fn uncertainty(&self) -> f64 {
        let expected = self.model.half_width * (self.model.n as f64 / self.kernel.n as f64).sqrt();
        self.kernel.half_width.max(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kernel: (f64, f64), model: f64) -> Check {
        let interval = |mean, half_width| Interval { mean, half_width, n: 8 };
        Check::new(interval(kernel.0, kernel.1), interval(model, 0.1), MEAN)
    }

    #[test]
    fn small_means_may_differ_by_half_a_millisecond_and_large_ones_by_three_percent() {
        assert!(check((10.0, 0.1), 10.5).agrees() && !check((10.0, 0.1), 10.51).agrees());
        assert!(check((100.0, 0.1), 97.1).agrees() && !check((100.0, 0.1), 96.9).agrees());
    }

    #[test]
    fn a_model_inside_the_kernels_interval_agrees_and_such_an_interval_says_little() {
        let wide = check((100.0, 9.0), 92.0);
        assert!(wide.agrees() && wide.says_little());
        assert_eq!(wide.repetitions_needed(), Some(72), "8 repetitions, and 9 ms are three times 3 ms");
        let narrow = check((100.0, 2.0), 98.0);
        assert!(!narrow.says_little());
        assert_eq!(narrow.repetitions_needed(), Some(8));
    }

    #[test]
    fn eight_repetitions_say_little_where_the_model_meets_something_rare() {
        let interval = |mean, half_width, n| Interval { mean, half_width, n };
        let calm = Check::new(interval(100.0, 1.0, 8), interval(110.0, 6.0, 32), MEAN);
        assert!(!calm.agrees() && calm.says_little());
        assert_eq!(calm.repetitions_needed(), Some(128), "6 ms of 32 are 12 ms of 8, four times 3 ms");
    }

    #[test]
    fn one_repetition_says_little_whatever_it_says() {
        let one = check((100.0, f64::INFINITY), 900.0);
        assert!(one.agrees() && one.says_little());
        assert_eq!(one.repetitions_needed(), None);
    }
}
