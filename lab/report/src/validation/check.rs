//! Compares one value of the runs in both worlds.

use hol_measure::{CONFIDENCE, ConfidenceInterval, RankSum};

use super::runs::RunValues;

/// The largest accepted deviation of the model from the kernel; the larger one of the two fields applies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Deviation in the value's unit.
    pub absolute: f64,
    /// Deviation as a share of the kernel's value.
    pub share: f64,
}

/// The tolerance of mean response times.
pub const MEAN_TOLERANCE: Tolerance = Tolerance { absolute: 0.5, share: 0.03 };
/// The tolerance of 99th percentiles.
pub const P99_TOLERANCE: Tolerance = Tolerance { absolute: 1.0, share: 0.05 };
/// The tolerance of the throughput of a flow without competitors.
pub const SINGLE_FLOW_TOLERANCE: Tolerance = Tolerance { absolute: 0.0, share: 0.03 };
/// The tolerance of the throughput of a flow with competitors.
pub const COMPETING_FLOWS_TOLERANCE: Tolerance = Tolerance { absolute: 0.0, share: 0.1 };

/// The median runs of both worlds, and a rank test of their runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianComparison {
    /// Median of the kernel's runs with its 95 % confidence interval.
    pub kernel: ConfidenceInterval,
    /// Median of the model's runs with its 95 % confidence interval.
    pub model: ConfidenceInterval,
    /// Model minus kernel, with the 95 % confidence interval.
    pub difference: ConfidenceInterval,
    /// The ranks of the kernel's runs among the model's.
    pub ranks: RankSum,
    /// The largest acceptable difference, in the unit of the values.
    pub tolerance: f64,
    /// The ends of the confidence interval of the kernel's median, or the lowest and the highest run if the runs are
    /// too few for an interval.
    kernel_range: (f64, f64),
    /// The one-sided uncertainty of the kernel's median, in the unit of the values.
    uncertainty: f64,
    /// The number of the kernel's repetitions.
    repetitions: usize,
}

impl MedianComparison {
    /// Compares the model with the kernel; `None` if a world has no median run.
    pub fn of(kernel: &RunValues, model: &RunValues, tolerance: Tolerance) -> Option<Self> {
        let (of_kernel, of_model) = kernel.median.zip(model.median)?;
        let Tolerance { absolute, share } = tolerance;
        Some(Self {
            kernel: of_kernel,
            model: of_model,
            difference: difference(kernel, model)?,
            ranks: RankSum::of(&kernel.values, &model.values),
            tolerance: absolute.max(share * of_kernel.value),
            kernel_range: kernel.range()?,
            uncertainty: uncertainty(kernel, model)?,
            repetitions: kernel.values.len(),
        })
    }

    /// Returns the absolute difference as a multiple of the tolerance.
    pub fn excess(&self) -> f64 {
        self.difference.value.abs() / self.tolerance
    }

    /// Returns the model's difference from the kernel, in percent of the kernel's median.
    pub fn percent(&self) -> ConfidenceInterval {
        let ConfidenceInterval { value, low, high } = self.difference;
        let [value, low, high] = [value, low, high].map(|end| 100.0 * end / self.kernel.value);
        ConfidenceInterval { value, low, high }
    }

    /// Returns whether the worlds agree. They do if the medians differ by no more than the tolerance, or if
    /// the model's median is inside the kernel's interval and a rank test shows no difference.
    pub fn agrees(&self) -> bool {
        let (low, high) = self.kernel_range;
        let inside = (low..=high).contains(&self.model.value);
        self.excess() <= 1.0 || (inside && !self.ranks_differ())
    }

    /// Returns whether the runs of one world are significantly higher.
    pub fn ranks_differ(&self) -> bool {
        self.ranks.p < 1.0 - CONFIDENCE
    }

    /// Returns whether the kernel's uncertainty exceeds the tolerance, so that the verdict has little
    /// meaning.
    pub fn is_imprecise(&self) -> bool {
        self.uncertainty > self.tolerance
    }

    /// Returns how many repetitions would reduce the uncertainty to the tolerance, estimated from the present ones; `None` with fewer than
    /// two.
    pub fn repetitions_needed(&self) -> Option<u64> {
        let ratio = self.uncertainty / self.tolerance;
        ratio.is_finite().then(|| (self.repetitions as f64 * (ratio * ratio).max(1.0)).ceil() as u64)
    }
}

/// Returns model minus kernel. The intervals of both medians have half the error probability each, so the difference is
/// inside the sum of both intervals with the usual confidence.
fn difference(kernel: &RunValues, model: &RunValues) -> Option<ConfidenceInterval> {
    let each = f64::midpoint(CONFIDENCE, 1.0);
    let [kernel, model] = [kernel, model].map(|runs| ConfidenceInterval::of_median(&runs.values, each));
    let (kernel, model) = kernel.zip(model)?;
    Some(ConfidenceInterval {
        value: model.value - kernel.value,
        low: model.low - kernel.high,
        high: model.high - kernel.low,
    })
}

/// Returns the longer side of the kernel's interval, or that of the model's interval scaled to the kernel's number of
/// repetitions if this is longer: eight runs may all miss an event that occurs in one of four runs. If the runs are too
/// few for an interval, the distance to the extreme runs is used.
fn uncertainty(kernel: &RunValues, model: &RunValues) -> Option<f64> {
    let longer_side = |runs: &RunValues| {
        let (value, (low, high)) = (runs.median?.value, runs.range()?);
        Some((value - low).max(high - value))
    };
    let (n, m) = (kernel.values.len() as f64, model.values.len() as f64);
    let uncertainty = longer_side(kernel)?.max(longer_side(model)? * (m / n).sqrt());
    Some(if kernel.values.len() < 2 { f64::INFINITY } else { uncertainty })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns runs spread evenly, `reach` to each side of `middle`.
    fn runs(middle: f64, reach: f64, count: u32) -> RunValues {
        let at = |run| middle + reach * (2.0 * f64::from(run) / f64::from((count - 1).max(1)) - 1.0);
        RunValues::of((0..count).map(at).collect())
    }

    fn check(kernel: &RunValues, model: &RunValues) -> MedianComparison {
        MedianComparison::of(kernel, model, MEAN_TOLERANCE).unwrap()
    }

    #[test]
    fn times_may_differ_by_half_a_millisecond_or_three_percent() {
        let agrees = |kernel, model| check(&runs(kernel, 0.01, 8), &runs(model, 0.01, 80)).agrees();
        assert!(agrees(10.0, 10.49) && !agrees(10.0, 10.51));
        assert!(agrees(100.0, 97.1) && !agrees(100.0, 96.9));
    }

    #[test]
    fn model_inside_the_interval_agrees_unless_ranks_differ() {
        let kernel = runs(100.0, 9.0, 8);
        let alike = check(&kernel, &runs(103.5, 9.0, 80));
        assert!(alike.excess() > 1.0 && alike.agrees() && alike.is_imprecise(), "{alike:?}");
        let higher = check(&kernel, &runs(108.0, 3.0, 80));
        assert!(higher.ranks.p < 0.05 && !higher.agrees(), "inside the interval, but {higher:?}");
        let outside = check(&runs(100.0, 3.5, 8), &runs(104.0, 16.0, 80));
        assert!(outside.ranks.p > 0.05 && !outside.agrees(), "ranks do not tell, but {outside:?}");
    }

    #[test]
    fn ranks_that_differ_within_the_tolerance_are_no_difference() {
        let near = check(&runs(100.0, 0.1, 8), &runs(101.0, 0.1, 80));
        assert!(near.ranks_differ() && near.agrees() && !near.is_imprecise());
        assert_eq!((near.ranks.superiority, near.repetitions_needed()), (0.0, Some(8)));
    }

    #[test]
    fn rare_extreme_run_changes_nothing() {
        let model = runs(20.0, 0.4, 80);
        let mut values = runs(20.0, 0.4, 8).values;
        values[7] = 5000.0;
        let with = check(&RunValues::of(values), &model);
        assert!(with.agrees(), "{with:?}");
        assert!((with.difference.value, with.kernel.value) == (0.0, 20.0), "{with:?}");
    }

    // By hand: with 97.5 % the first and the last of eight runs bound the median, and the 5th and the 16th of 20 runs.
    #[test]
    fn the_difference_has_the_ends_of_both_intervals() {
        let numbers = |from: u32, to: u32| RunValues::of((from..=to).map(f64::from).collect());
        let check = check(&numbers(101, 108), &numbers(201, 220));
        let ConfidenceInterval { value, low, high } = check.difference;
        assert_eq!((value, low, high), (106.0, 205.0 - 108.0, 216.0 - 101.0));
        assert!((check.percent().value - 10600.0 / 104.5).abs() < 1e-9);
    }

    #[test]
    fn few_repetitions_are_imprecise_if_the_model_varies() {
        let calm = check(&runs(100.0, 0.5, 8), &runs(110.0, 40.0, 80));
        assert!(calm.is_imprecise() && calm.repetitions_needed() > Some(80), "{calm:?}");
        let two = check(&runs(100.0, 0.1, 2), &runs(100.1, 0.1, 20));
        assert!(two.agrees() && !two.is_imprecise(), "two runs where the model's twenty are alike: {two:?}");
        let apart = check(&runs(100.0, 0.0, 2), &runs(104.0, 0.0, 2));
        assert!(apart.ranks.p > 0.05 && !apart.agrees(), "two are too few for ranks: {apart:?}");
    }

    #[test]
    fn single_repetition_is_always_imprecise() {
        let one = check(&runs(100.0, 0.0, 1), &runs(900.0, 1.0, 10));
        assert!(!one.agrees() && one.is_imprecise(), "{one:?}");
        assert_eq!(one.repetitions_needed(), None);
    }
}
