//! Compares the latencies of two transports: difference of the means with confidence interval, p value and
//! verdict.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::interval::{CONFIDENCE, Interval, moments, student_t, students_t};
use crate::{Allowance, SignedRanks};

/// The verdict of a comparison of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first sample is lower: its mean minus that of the second has an interval below zero.
    Faster,
    /// The first sample is higher: its mean minus that of the second has an interval above zero.
    Slower,
    /// The samples are equivalent: the difference is within the margin, even if it is significant.
    NoDifference,
    /// The repetitions are too few to decide whether the samples differ.
    Undecided,
}

/// The result of a comparison: the first mean minus the second, and the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The first mean minus the second, in the unit of the samples, without allowances for rare events.
    pub difference: Interval,
    /// Lower end of the difference's confidence interval. It includes an allowance for rare events that did not occur
    /// in the runs of the second sample.
    pub low: f64,
    /// Upper end of the difference's confidence interval. It includes an allowance for rare events that did not occur
    /// in the runs of the first sample.
    pub high: f64,
    /// p-value of the difference: the probability of a difference this large or larger if the true difference were
    /// zero (two-sided t test).
    pub p: f64,
    /// p-value of equivalence: the probability of a difference this small if the true difference were as large as the
    /// margin (two one-sided tests).
    pub p_equivalent: f64,
    /// p-value of a difference beyond the margin: the probability of a difference this large if the true difference
    /// were as large as the margin (one-sided test).
    pub p_beyond: f64,
    /// The signed-rank test of the pairs, a second test for the same difference; `None` for unpaired samples.
    pub ranks: Option<SignedRanks>,
    /// The verdict at the requested level of confidence.
    pub verdict: Verdict,
}

/// An estimated difference of two means.
struct Estimate {
    mean: f64,
    /// The standard error of the difference.
    error: f64,
    /// Degrees of freedom of the t distribution.
    freedom: f64,
    n: u64,
    /// The allowances of the first and of the second mean: by how much rare events that did not occur may raise
    /// each mean.
    allowances: [Allowance; 2],
}

/// Compares repetitions pair by pair. The runs of a pair have the same seed, and so the same losses.
///
/// `margin`: the largest difference that counts as none (0: only identical samples are equal).
///
/// # Panics
/// If the two have different numbers of samples, so that they are not paired.
///
/// ```
/// use hol_measure::{Verdict, compare_paired};
///
/// // Seeds differ by more than the transports, but SCTP is faster with each seed.
/// let (tcp, sctp) = ([20.0, 35.1, 27.2, 42.4, 31.3], [19.0, 34.0, 26.3, 41.2, 30.3]);
/// assert_eq!(compare_paired(&sctp, &tcp, 0.1, 0.95).verdict, Verdict::Faster);
/// ```
pub fn compare_paired(first: &[f64], second: &[f64], margin: f64, confidence: f64) -> Comparison {
    compare_with_allowances(first, second, [Allowance::default(); 2], margin, confidence)
}

/// Compares like [`compare_paired`], with allowances for rare events that did not occur in the runs. Without
/// allowances, a sample might be called lower only because these events did not occur.
pub fn compare_with_allowances(
    first: &[f64],
    second: &[f64],
    allowances: [Allowance; 2],
    margin: f64,
    confidence: f64,
) -> Comparison {
    assert_eq!(first.len(), second.len(), "paired samples come in pairs");
    let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
    let n = differences.len();
    let ranks = Some(SignedRanks::of(first.iter().copied().zip(second.iter().copied())));
    if n < 2 {
        let mean = differences.first().copied().unwrap_or(f64::NAN);
        return Comparison { ranks, ..Comparison::undecided(mean, n) };
    }
    let (mean, variance) = moments(&differences);
    let error = (variance / n as f64).sqrt();
    let estimate = Estimate { mean, error, freedom: n as f64 - 1.0, n: n as u64, allowances };
    Comparison { ranks, ..estimate.judge(margin, confidence) }
}

/// Compares times pair by pair by their ratios; the runs of a pair have the same seed. The `difference` of the
/// result is the difference of the natural logarithms of the times.
///
/// Times are skewed, and their spread grows with them. A test of ratios therefore detects differences that a test
/// of differences misses. But a rare long run affects a ratio less than the mean that is reported, so no transport
/// is called faster if ratios and means disagree. Returns `None` without samples, or if a time is not positive.
/// `allowances` is in the unit of the samples; `margin` is a share of the second sample.
///
/// # Panics
///
/// If the two have different numbers of samples, so that they are not paired.
pub fn compare_ratios(
    first: &[f64],
    second: &[f64],
    allowances: [Allowance; 2],
    margin: f64,
    confidence: f64,
) -> Option<Comparison> {
    if first.is_empty() || first.iter().chain(second).any(|time| *time <= 0.0) {
        return None;
    }
    let logs = |times: &[f64]| times.iter().map(|time| time.ln()).collect::<Vec<f64>>();
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let [a, b] = [mean(first), mean(second)];
    let share = |allowance: Allowance, mean: f64| Allowance {
        expected: (allowance.expected / mean).ln_1p(),
        half_width: (allowance.half_width / (mean + allowance.expected)).ln_1p(),
    };
    let allowances = [share(allowances[0], a), share(allowances[1], b)];
    let ratios = compare_with_allowances(&logs(first), &logs(second), allowances, margin.ln_1p(), confidence);
    Some(if ratios.difference.mean * (a - b) < 0.0 { ratios.without_winner() } else { ratios })
}

/// Compares independent samples that may vary differently (Welch 1947).
///
/// ```
/// use hol_measure::{Verdict, compare_unpaired};
///
/// let (slow, fast) = ([20.3, 20.1, 19.9], [15.2, 14.8, 15.1, 15.0]);
/// assert_eq!(compare_unpaired(&fast, &slow, 0.0, 0.95).verdict, Verdict::Faster);
/// ```
pub fn compare_unpaired(first: &[f64], second: &[f64], margin: f64, confidence: f64) -> Comparison {
    let n = first.len().min(second.len());
    if n < 2 {
        let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64;
        return Comparison::undecided(mean(first) - mean(second), n);
    }
    let ((a, var_a), (b, var_b)) = (moments(first), moments(second));
    let (n_a, n_b) = (first.len() as f64, second.len() as f64);
    let (a_part, b_part) = (var_a / n_a, var_b / n_b);
    let error = (a_part + b_part).sqrt();
    // Welch–Satterthwaite; without any variance every freedom gives the same answer.
    let spread = a_part * a_part / (n_a - 1.0) + b_part * b_part / (n_b - 1.0);
    let freedom = if spread > 0.0 { (a_part + b_part) * (a_part + b_part) / spread } else { n_a + n_b - 2.0 };
    let allowances = [Allowance::default(); 2];
    Estimate { mean: a - b, error, freedom, n: n as u64, allowances }.judge(margin, confidence)
}

impl Comparison {
    fn undecided(mean: f64, n: usize) -> Self {
        let difference = Interval { mean, half_width: f64::INFINITY, n: n as u64 };
        let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        let verdict = Verdict::Undecided;
        Self { difference, low, high, p: 1.0, p_equivalent: 1.0, p_beyond: 1.0, ranks: None, verdict }
    }

    /// Returns the comparison without a winner: faster and slower become undecided.
    fn without_winner(self) -> Self {
        let verdict = if self.verdict == Verdict::NoDifference { self.verdict } else { Verdict::Undecided };
        Self { p: 1.0, p_beyond: 1.0, verdict, ..self }
    }

    /// Corrects the comparison for pairs that were left out because one of their runs did not carry its load.
    /// `ranks` are the ranks of all pairs. The verdict faster or slower stays if a sign test over all pairs
    /// confirms it; otherwise, and for every other verdict, the result is undecided.
    pub fn confirmed_by(self, ranks: SignedRanks, confidence: f64) -> Self {
        let [p, p_beyond] = [self.p, self.p_beyond].map(|p| p.max(ranks.sign_test_p()));
        let is_lower = ranks.lower > ranks.higher;
        let same_way = is_lower == (self.difference.mean < 0.0);
        let sure = same_way && p < 1.0 - confidence && self.verdict != Verdict::NoDifference;
        let verdict = if sure { self.verdict } else { Verdict::Undecided };
        let [p, p_beyond] = if same_way { [p, p_beyond] } else { [1.0, 1.0] };
        Self { p, p_beyond, p_equivalent: 1.0, ranks: Some(ranks), verdict, ..self }
    }
}

impl Estimate {
    /// Returns the probability of a t value above that of `distance`. `allowances` make the distance shorter and less
    /// certain.
    fn beyond(&self, distance: f64, allowances: Allowance) -> f64 {
        let distance = distance - allowances.expected;
        let error = self.error.hypot(allowances.half_width / normal_quantile(CONFIDENCE));
        match (error > 0.0, distance > 0.0) {
            (true, _) => students_t(self.freedom).sf(distance / error),
            (false, true) => 0.0,
            (false, false) => 1.0,
        }
    }

    fn judge(self, margin: f64, confidence: f64) -> Comparison {
        let half_width = student_t(confidence, self.freedom) * self.error;
        let difference = Interval { mean: self.mean, half_width, n: self.n };
        let reach = |allowances: Allowance| allowances.expected + half_width.hypot(allowances.half_width);
        let [first, second] = self.allowances;
        let (low, high) = (self.mean - reach(second), self.mean + reach(first));
        // The transport with the lower mean may have been lucky. If the other one was lucky, the true difference is
        // even larger.
        let lucky = if self.mean < 0.0 { first } else { second };
        let both = Allowance {
            expected: first.expected.max(second.expected),
            half_width: first.half_width.hypot(second.half_width),
        };
        let identical = self.mean == 0.0 && self.error == 0.0;
        let p = (2.0 * self.beyond(self.mean.abs(), lucky)).min(1.0);
        let p_equivalent = if identical { 0.0 } else { self.beyond(margin - self.mean.abs(), both) };
        let p_beyond = if identical { 1.0 } else { self.beyond(self.mean.abs() - margin, lucky) };
        let verdict = if p_equivalent < 1.0 - confidence {
            Verdict::NoDifference
        } else if high < 0.0 {
            Verdict::Faster
        } else if low > 0.0 {
            Verdict::Slower
        } else {
            Verdict::Undecided
        };
        Comparison { difference, low, high, p, p_equivalent, p_beyond, ranks: None, verdict }
    }
}

/// Returns the two-sided quantile of the standard normal distribution for this confidence.
fn normal_quantile(confidence: f64) -> f64 {
    Normal::standard().inverse_cdf(0.5 + confidence / 2.0)
}

/// Adjusts the p-values of a family of tests so that the expected share of false rejections is at most the level
/// (Benjamini and Hochberg 1995). For a map this limits the share of wrong cells, whereas [`adjust_by_holm`] limits the
/// probability that any cell is wrong.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut adjusted = vec![0.0; p.len()];
    let mut min: f64 = 1.0;
    for (above, test) in order.into_iter().enumerate() {
        min = min.min(p[test] * p.len() as f64 / (p.len() - above) as f64);
        adjusted[test] = min;
    }
    adjusted
}

/// Adjusts the p-values of a family of tests (Holm 1979). A hypothesis is rejected if its adjusted value is below
/// the level of the whole family.
pub fn adjust_by_holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, test) in order.into_iter().enumerate() {
        largest = largest.max(p[test] * (p.len() - rank) as f64).min(1.0);
        adjusted[test] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 5] = [20.1, 20.5, 19.8, 20.9, 20.2];

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    // python3 -c "from scipy.stats import ttest_rel; r=ttest_rel([20.1,20.5,19.8,20.9,20.2],[21.0,21.2,20.9,21.1,21.5]); print(r.pvalue, r.confidence_interval(.95))"
    #[test]
    fn paired_differences_agree_with_scipy() {
        let slower = [21.0, 21.2, 20.9, 21.1, 21.5];
        let result = compare_paired(&A, &slower, 0.0, 0.95);
        assert!(close(result.p, 0.011229448525462097), "{result:?}");
        assert!(
            close(result.difference.mean, -0.84) && close(result.difference.half_width, 0.5238586147325375)
        );
        assert_eq!(result.verdict, Verdict::Faster);
        assert_eq!(compare_paired(&slower, &A, 0.0, 0.95).verdict, Verdict::Slower);
        assert_eq!(compare_paired(&A, &slower, 0.0, 0.99).verdict, Verdict::Undecided);
    }

    // python3 -c "from scipy.stats import ttest_ind; print(ttest_ind([20.1,20.5,19.8,20.9,20.2],[21.0,21.2,20.9,21.1,23.5,19.0,20.0],equal_var=False).pvalue)"
    // 0.2697736495692735; half width t.ppf(.975, df) * sqrt(va + vb) = 1.2871692073198406
    #[test]
    fn unpaired_differences_agree_with_scipy() {
        let result = compare_unpaired(&A, &[21.0, 21.2, 20.9, 21.1, 23.5, 19.0, 20.0], 0.0, 0.95);
        assert!(close(result.p, 0.2697736495692735), "{result:?}");
        assert!(close(result.difference.mean, -0.6571428571428513));
        assert!(close(result.difference.half_width, 1.2871692073198406));
        assert_eq!(result.verdict, Verdict::Undecided);
    }

    // python3 -c "from scipy.stats import ttest_1samp as t; d=[.01,-.02,.03,0,-.01,.02]; print(max(t(d,-.05,alternative='greater').pvalue, t(d,.05,alternative='less').pvalue))"
    // 0.0010011707205666318
    #[test]
    fn equivalence_agrees_with_scipy_and_needs_a_margin() {
        let (first, second) = ([1.01, 0.98, 1.03, 1.0, 0.99, 1.02], [1.0; 6]);
        let result = compare_paired(&first, &second, 0.05, 0.95);
        assert!(close(result.p_equivalent, 0.0010011707205666318), "{result:?}");
        assert_eq!(result.verdict, Verdict::NoDifference);
        assert_eq!(compare_paired(&first, &second, 0.0, 0.95).verdict, Verdict::Undecided);
        assert_eq!(compare_paired(&first, &second, 0.01, 0.95).verdict, Verdict::Undecided);
    }

    // python3 -c "from scipy.stats import ttest_1samp as t; d=[-.9,-.7,-1.1,-.2,-1.3]; print(t(d,-.05,alternative='less').pvalue)"
    // 0.006920017060157259
    #[test]
    fn a_difference_beyond_the_margin_agrees_with_scipy() {
        let slower = [21.0, 21.2, 20.9, 21.1, 21.5];
        let result = compare_paired(&A, &slower, 0.05, 0.95);
        assert!(close(result.p_beyond, 0.006920017060157259), "{result:?}");
        assert_eq!(compare_paired(&[20.0; 3], &[21.0; 3], 0.5, 0.95).p_beyond, 0.0);
        assert_eq!(compare_paired(&[20.0; 3], &[20.2; 3], 0.5, 0.95).p_beyond, 1.0);
    }

    #[test]
    fn significant_difference_within_the_margin_is_no_difference() {
        let first = [20.010, 20.011, 20.012];
        let second = [20.000, 20.000, 20.000];
        assert_eq!(compare_paired(&first, &second, 0.0, 0.95).verdict, Verdict::Slower);
        assert_eq!(compare_paired(&first, &second, 1.0, 0.95).verdict, Verdict::NoDifference);
    }

    #[test]
    fn samples_without_variance_are_decided() {
        assert_eq!(compare_paired(&[20.0; 3], &[20.0; 3], 0.0, 0.95).verdict, Verdict::NoDifference);
        assert_eq!(compare_paired(&[20.0; 3], &[20.0; 3], 0.0, 0.95).p, 1.0);
        assert_eq!(compare_paired(&[20.0; 3], &[21.0; 3], 0.5, 0.95).verdict, Verdict::Faster);
        assert_eq!(compare_unpaired(&[20.0; 3], &[20.0; 3], 0.0, 0.95).verdict, Verdict::NoDifference);
        assert_eq!(compare_unpaired(&[22.0; 3], &[20.0; 3], 0.0, 0.95).verdict, Verdict::Slower);
    }

    #[test]
    fn one_repetition_is_undecided() {
        let result = compare_paired(&[20.0], &[40.0], 0.0, 0.95);
        assert_eq!((result.verdict, result.difference.mean), (Verdict::Undecided, -20.0));
        let result = compare_unpaired(&[20.0], &A, 0.0, 0.95);
        assert_eq!(result.verdict, Verdict::Undecided);
        assert!(close(result.difference.mean, -0.3), "{result:?}");
    }

    #[test]
    fn verdict_needs_ranks_that_agree() {
        let (first, second) = ([20.0, 20.1, 19.9, 20.2, 20.0, 20.1, 20.0, 20.2, 19.9], [21.0; 9]);
        let means = compare_paired(&first, &second, 0.0, 0.95);
        let with = |collapsed: usize| {
            let finite = first.into_iter().zip(second).skip(collapsed);
            let worst = std::iter::repeat_n((f64::INFINITY, 21.0), collapsed + 1);
            means.confirmed_by(SignedRanks::of(finite.chain(worst)), 0.95)
        };
        assert_eq!((with(0).verdict, with(0).ranks.unwrap().higher), (Verdict::Faster, 1));
        assert_eq!(with(2).verdict, Verdict::Undecided, "three of ten runs collapsed");
        assert_eq!(with(2).p, with(2).ranks.unwrap().sign_test_p());
    }

    // By hand: .005 * 4, .01 * 3, .03 * 2, and .04 * 1 raised to the one before.
    #[test]
    fn holm_multiplies_the_smallest_most() {
        let adjusted = adjust_by_holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!(close(*got, expected), "{adjusted:?}");
        }
        assert_eq!(adjust_by_holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(adjust_by_holm(&[]).is_empty());
    }

    // python3 -c "from scipy.stats import ttest_ind as t; r=t([20.1,20.5],[21.0,21.9],equal_var=False)
    // print(r.pvalue, r.confidence_interval(.95))"
    // scipy 1.17.1: 0.1986491596 -4.5011601626 2.2011601626
    #[test]
    fn two_repetitions_each_agree_with_scipy() {
        let result = compare_unpaired(&[20.1, 20.5], &[21.0, 21.9], 0.0, 0.95);
        assert!(close(result.p, 0.19864915964132657), "{result:?}");
        assert!((result.difference.low() + 4.501160162621921).abs() < 1e-6, "{result:?}");
        assert!((result.difference.high() - 2.2011601626219237).abs() < 1e-6, "{result:?}");
    }

    #[test]
    fn paired_comparison_ranks_even_few_pairs() {
        let slower = [21.0, 21.2, 20.9, 21.1, 21.5];
        assert_eq!(compare_paired(&A, &slower, 0.0, 0.95).ranks.unwrap().lower, 5);
        assert_eq!(compare_paired(&[20.0], &[40.0], 0.0, 0.95).ranks.unwrap().lower, 1);
        assert_eq!(compare_unpaired(&A, &slower, 0.0, 0.95).ranks, None);
    }

    #[test]
    fn difference_with_opposite_ranks_is_undecided() {
        let means = compare_paired(&A, &[21.0, 21.2, 20.9, 21.1, 21.5], 0.05, 0.95);
        assert!(means.p < 0.05 && means.p_beyond < 0.05 && means.p_equivalent > 0.5);
        let ranks = |lower, higher| SignedRanks { lower, higher, p: 0.5 };
        let against = means.confirmed_by(ranks(1, 9), 0.95);
        assert_eq!((against.verdict, against.p, against.p_beyond), (Verdict::Undecided, 1.0, 1.0));
        let with = means.confirmed_by(ranks(9, 1), 0.95);
        // p of the sign test: scipy.stats.binomtest(1, 10).pvalue
        assert_eq!((with.verdict, with.p_equivalent), (Verdict::Faster, 1.0));
        assert!(close(with.p, 0.021484375) && close(with.p_beyond, 0.021484375), "{with:?}");
        assert_eq!(means.confirmed_by(ranks(5, 5), 0.95).verdict, Verdict::Undecided);
    }

    // python3 -c "from scipy.stats import false_discovery_control as f; print(f([.01,.04,.03,.005]))"
    // [0.02 0.04 0.04 0.02]
    #[test]
    fn benjamini_hochberg_agrees_with_scipy() {
        let adjusted = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]);
        for (got, expected) in adjusted.iter().zip([0.02, 0.04, 0.04, 0.02]) {
            assert!(close(*got, expected), "{adjusted:?}");
        }
        assert!(benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn possible_unseen_stalls_prevent_the_verdict_faster() {
        let slower = [21.0, 21.2, 20.9, 21.1, 21.5];
        let allowances = Allowance { expected: 0.5, half_width: 1.0 };
        let none = Allowance::default();
        let lucky = compare_with_allowances(&A, &slower, [allowances, none], 0.0, 0.95);
        assert_eq!(lucky.verdict, Verdict::Undecided);
        assert!(lucky.p > 0.05 && lucky.high > 0.0, "{lucky:?}");
        // Events missing from the slower one's runs would only make it slower.
        let sure = compare_with_allowances(&A, &slower, [none, allowances], 0.0, 0.95);
        let plain = compare_paired(&A, &slower, 0.0, 0.95);
        assert_eq!((sure.verdict, sure.p, sure.high), (Verdict::Faster, plain.p, plain.high));
        assert!(sure.low < plain.low, "{sure:?}");
        let (first, second) = ([1.01, 0.98, 1.03, 1.0, 0.99, 1.02], [1.0; 6]);
        let same =
            |allowances| compare_with_allowances(&first, &second, [allowances, none], 0.05, 0.95).verdict;
        assert_eq!((same(none), same(allowances)), (Verdict::NoDifference, Verdict::Undecided));
    }

    // By hand: the logarithms differ by -0.361 with a standard error of 0.042, the times by -13 with one of 5.1.
    #[test]
    fn ratios_decide_where_differences_do_not() {
        let (first, second) = ([10.0, 22.0, 31.0, 48.0], [14.0, 33.0, 40.0, 75.0]);
        let none = [Allowance::default(); 2];
        let ratios = compare_ratios(&first, &second, none, 0.0, 0.95).unwrap();
        assert_eq!(ratios.verdict, Verdict::Faster);
        assert_eq!(compare_paired(&first, &second, 0.0, 0.95).verdict, Verdict::Undecided);
        assert_eq!(compare_ratios(&[0.0], &[1.0], none, 0.0, 0.95), None);
    }

    /// An allowance of 20 times the mean makes the ratio uncertain by a factor of 21, not of e²⁰.
    #[test]
    fn ratio_with_a_large_allowance_has_a_finite_interval() {
        let (first, second) = ([1.0, 1.1, 0.9, 1.0], [1.0, 0.9, 1.1, 1.0]);
        let rare = Allowance { expected: 0.0, half_width: 20.0 };
        let ratios = compare_ratios(&first, &second, [rare, Allowance::default()], 0.0, 0.95).unwrap();
        assert!((21.0..23.0).contains(&ratios.high.exp()), "{ratios:?}");
    }

    #[test]
    fn ratios_that_contradict_the_means_are_undecided() {
        // Nine runs of ten are faster by a tenth, the tenth takes two and a half times as long.
        let mut first = [0.9; 60];
        first.iter_mut().step_by(10).for_each(|time| *time = 2.5);
        let ratios = compare_ratios(&first, &[1.0; 60], [Allowance::default(); 2], 0.0, 0.95).unwrap();
        assert!(ratios.difference.mean < 0.0 && ratios.p == 1.0, "{ratios:?}");
        assert_eq!(ratios.verdict, Verdict::Undecided);
    }
}
