//! The ranks of the kernel's runs among the model's, over all points.
//!
//! One point has few runs. If both worlds have the same distribution, the share of the model's runs that a
//! run of the kernel exceeds is uniform at every point, with mean one half. This is the probability integral
//! transform with the model's runs as the distribution.

use std::collections::BTreeMap;

use hol_measure::{CONFIDENCE, Interval};

use super::Validation;
use super::runs::RunValues;

/// Returns the share of the model's runs that each run of the kernel exceeds, by repetition. Empty if the
/// model's runs differ by no more than `tolerance`: then their order has no meaning beyond their median.
pub(super) fn ranks(kernel: &RunValues, model: &RunValues, tolerance: f64) -> Vec<f64> {
    let mut of_model = model.values.clone();
    of_model.sort_by(f64::total_cmp);
    let spread = of_model.last().zip(of_model.first()).map_or(0.0, |(max, min)| max - min);
    // If both extreme runs are infinite, the spread is not a number.
    if spread <= tolerance || spread.is_nan() {
        return Vec::new();
    }
    let rank = |value: &f64| {
        let below = of_model.partition_point(|other| other < value);
        let to = of_model.partition_point(|other| other <= value);
        (below + to) as f64 / 2.0 / of_model.len() as f64
    };
    kernel.values.iter().map(rank).collect()
}

impl Validation {
    /// Returns the mean rank over all points with differing runs of the model. A repetition has the same
    /// losses at many points, so the interval is over repetitions.
    pub fn mean_rank(&self) -> Option<Interval> {
        let mut by_repetition: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (repetition, rank) in self.points.iter().flat_map(|point| point.ranks.iter().enumerate()) {
            by_repetition.entry(repetition).or_default().push(*rank);
        }
        let mean = |ranks: &Vec<f64>| ranks.iter().sum::<f64>() / ranks.len() as f64;
        Interval::of(&by_repetition.values().map(mean).collect::<Vec<_>>(), CONFIDENCE)
    }

    /// Describes [`mean_rank`](Self::mean_rank); empty if there is none.
    pub fn describe_rank(&self) -> String {
        let Some(rank) = self.mean_rank().filter(|rank| rank.half_width.is_finite()) else {
            return String::new();
        };
        let even = (rank.mean - 0.5).abs() <= rank.half_width;
        let verdict = match (even, rank.mean > 0.5) {
            (true, _) => "as if both had the same distribution",
            (false, true) => "so the kernel's values are higher",
            (false, false) => "so the kernel's values are lower",
        };
        format!(
            "where the model's runs differ, the value of a kernel run exceeds on average {:.1} ± {:.1} % of the model's values, {verdict}",
            100.0 * rank.mean,
            100.0 * rank.half_width
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_points::{compared, validation};

    const POINT: &str = "transports = ['tcp']\nmessages = 4\nrepetitions = 4";

    #[test]
    fn rank_is_the_share_of_lower_model_runs_and_a_tie_counts_half() {
        let point = compared(POINT, &[25, 20, 40], &[20, 21, 30, 31]);
        assert_eq!(point.ranks, [0.5, 0.125, 1.0]);
        let mean = point.ranks.iter().sum::<f64>() / 3.0;
        assert_eq!(point.mean.unwrap().ranks.superiority, mean, "what the test of the point says");
    }

    #[test]
    fn equal_runs_of_the_model_give_no_ranks() {
        let point = compared(POINT, &[25, 20], &[20, 20]);
        assert!(point.ranks.is_empty());
        assert_eq!(validation(vec![point]).describe_rank(), "");
    }

    #[test]
    fn ranks_distinguish_different_distributions() {
        let model: Vec<u64> = (20..60).collect();
        let same = compared(POINT, &[22, 30, 38, 45, 57], &model);
        let words = validation(vec![same]).describe_rank();
        assert!(words.ends_with("as if both had the same distribution"), "{words}");
        let slower = compared(POINT, &[50, 52, 55, 58, 59], &model);
        let words = validation(vec![slower]).describe_rank();
        assert!(words.ends_with("so the kernel's values are higher"), "{words}");
    }
}
