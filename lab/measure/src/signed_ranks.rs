//! Wilcoxon's signed rank test of paired repetitions: whether one of two samples is mostly lower. An extreme run counts
//! as one run, whatever its value.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

/// Largest number of pairs for which every assignment of signs is enumerated. With more pairs the distribution of the
/// rank sum is practically normal.
const MAX_ENUMERATED: usize = 60;

/// The result of a signed-rank test (Wilcoxon).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SignedRanks {
    /// Number of pairs in which the first sample is lower.
    pub lower: u64,
    /// Number of pairs in which the first sample is higher.
    pub higher: u64,
    /// Two-sided p-value: the probability of rank sums at least this different if neither sample tends to be lower; 1
    /// if no pair differs.
    pub p: f64,
}

impl SignedRanks {
    /// Ranks the differences of paired samples, first minus second, by their sizes; infinite differences are the
    /// largest.
    ///
    /// Pairs without a difference are left out (Wilcoxon 1945). Differences of equal size share their ranks. The
    /// p-value is exact for these ranks, so that ties do not distort it.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let differs =
            |(a, b): (f64, f64)| (a != b).then_some(a - b).filter(|difference| !difference.is_nan());
        let mut differences: Vec<f64> = pairs.into_iter().filter_map(differs).collect();
        differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let ranks = doubled_ranks(&differences);
        let is_lower = |difference: &&f64| **difference < 0.0;
        let lower = differences.iter().filter(is_lower).count() as u64;
        let of_lower = ranks.iter().zip(&differences).filter(|(_, difference)| is_lower(difference));
        let sum: usize = of_lower.map(|(rank, _)| rank).sum();
        let p = if ranks.len() <= MAX_ENUMERATED { exact_p(&ranks, sum) } else { approximate_p(&ranks, sum) };
        Self { lower, higher: differences.len() as u64 - lower, p }
    }

    /// Returns the p-value of the two-sided sign test, which ignores the sizes of the differences.
    pub fn sign_test_p(&self) -> f64 {
        let even = Binomial::new(0.5, self.lower + self.higher);
        even.map_or(1.0, |even| (2.0 * even.cdf(self.lower.min(self.higher))).min(1.0))
    }
}

/// Returns twice the rank of each difference; the differences are sorted by size. Doubled ranks are integers,
/// although equal differences share the mean of their ranks.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let same = |a: &f64, b: &f64| a.abs() == b.abs();
    let mut ranks = Vec::with_capacity(sorted.len());
    for group in sorted.chunk_by(same) {
        let first = ranks.len() + 1;
        ranks.extend(std::iter::repeat_n(2 * first + group.len() - 1, group.len()));
    }
    ranks
}

/// Returns the two-sided p-value: the probability, over all assignments of signs, of a sum of ranks at least as
/// far from its middle as `sum`.
fn exact_p(ranks: &[usize], sum: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    // likely[s]: the probability of sum s.
    let mut likely = vec![0.0; total + 1];
    likely[0] = 1.0;
    let mut max = 0;
    for rank in ranks {
        max += rank;
        for at in (0..=max).rev() {
            let with = if at >= *rank { likely[at - rank] } else { 0.0 };
            likely[at] = 0.5 * (likely[at] + with);
        }
    }
    let min = sum.min(total - sum);
    (2.0 * likely[..=min].iter().sum::<f64>()).min(1.0)
}

/// Returns the two-sided p-value for many pairs, by the normal approximation, whose variance accounts for ties.
fn approximate_p(ranks: &[usize], sum: usize) -> f64 {
    let middle = ranks.iter().sum::<usize>() as f64 / 2.0;
    let variance = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum::<f64>() / 4.0;
    2.0 * Normal::standard().sf((sum as f64 - middle).abs() / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(differences: &[f64]) -> SignedRanks {
        SignedRanks::of(differences.iter().map(|difference| (*difference, 0.0)))
    }

    // python3 -c "from scipy.stats import wilcoxon as w
    // print(w([-.9,-.7,-1.1,-.2,-1.3], method='exact').pvalue, w([1.2,-.3,2.5,.8,-.1,3.3,.4,1.9,-2.2,.6], method='exact').pvalue)"
    // 0.0625 0.10546875
    #[test]
    fn signed_ranks_of_few_pairs_agree_with_scipy() {
        assert_eq!(of(&[-0.9, -0.7, -1.1, -0.2, -1.3]), SignedRanks { lower: 5, higher: 0, p: 0.0625 });
        let mixed = of(&[1.2, -0.3, 2.5, 0.8, -0.1, 3.3, 0.4, 1.9, -2.2, 0.6]);
        assert_eq!((mixed.lower, mixed.higher, mixed.p), (3, 7, 0.10546875));
    }

    // python3 -c "import numpy as np; from scipy.stats import wilcoxon as w, PermutationMethod as P
    // print(w([1,1,2,-1,3,0,2,-2,5,1], method=P(n_resamples=np.inf)).pvalue)"
    // 0.12109375
    #[test]
    fn ties_and_zeros_agree_with_all_permutations_in_scipy() {
        let tied = of(&[1.0, 1.0, 2.0, -1.0, 3.0, 0.0, 2.0, -2.0, 5.0, 1.0]);
        assert_eq!((tied.lower, tied.higher, tied.p), (2, 7, 0.12109375));
        assert_eq!(of(&[0.0; 4]).p, 1.0);
        assert_eq!(of(&[]).p, 1.0);
    }

    // python3 -c "from scipy.stats import wilcoxon as w; d=[(7*i*i+3*i)%101-38 for i in range(1,301)]
    // print(w(d, method='approx', correction=False).pvalue)"
    // 3.1188261652093476e-06
    #[test]
    fn signed_ranks_of_many_pairs_agree_with_scipy() {
        let many: Vec<f64> = (1..301).map(|i| f64::from((7 * i * i + 3 * i) % 101 - 38)).collect();
        assert!((of(&many).p / 3.1188261652093476e-06 - 1.0).abs() < 1e-6, "{:?}", of(&many));
    }

    // python3 -c "from scipy.stats import binomtest as b; print(b(1, 10).pvalue, b(3, 10).pvalue, b(5, 10).pvalue)"
    // 0.021484375 0.34375 1.0
    #[test]
    fn p_of_signs_agrees_with_scipy() {
        let of = |lower, higher| SignedRanks { lower, higher, p: 1.0 }.sign_test_p();
        for (ours, scipy) in [(of(9, 1), 0.021484375), (of(3, 7), 0.34375), (of(5, 5), 1.0), (of(0, 0), 1.0)]
        {
            assert!((ours - scipy).abs() < 1e-12, "{ours} for {scipy}");
        }
    }

    #[test]
    fn one_outlier_in_ten_has_only_its_rank() {
        let mut tail = [-1.0, -1.1, -1.2, -0.9, -0.8, -1.3, -1.4, -0.7, -0.6, 80.0];
        assert!(of(&tail).p < 0.1, "{:?}", of(&tail));
        let near = of(&tail);
        tail[9] = f64::INFINITY;
        assert_eq!(of(&tail), near, "and one that never ended is no farther");
    }
}
