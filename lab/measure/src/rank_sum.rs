//! The rank sum test of unpaired repetitions (Mann and Whitney 1947): whether one of two samples ranks above the other.
//! An extreme run counts as one run, whatever its value.

use statrs::distribution::{ContinuousCDF, Normal};

/// Maximum size of the smaller sample for which every choice of ranks is enumerated. With larger samples the
/// distribution of the rank sum is practically normal.
const MAX_ENUMERATED: usize = 8;

/// The result of a rank-sum test (Mann–Whitney).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSum {
    /// Probability of superiority (A12, Vargha and Delaney 2000): the share of all pairs in which the first
    /// sample is higher. Pairs of equal values count half. 0.5 if neither sample is higher.
    pub superiority: f64,
    /// Two-sided p-value: the probability of ranks this different or more if both samples had the same
    /// distribution; 1 if no values differ.
    pub p: f64,
}

impl RankSum {
    /// Compares two samples by the ranks of their values among all values; infinite values rank last and count as
    /// equal.
    ///
    /// Equal values share their ranks. If a sample is small, the p-value is exact, even with ties; otherwise it is the
    /// normal approximation, whose variance accounts for ties.
    ///
    /// # Panics
    /// If a value is not a number.
    pub fn of(first: &[f64], second: &[f64]) -> Self {
        assert!(first.iter().chain(second).all(|sample| !sample.is_nan()), "samples are numbers");
        if first.is_empty() || second.is_empty() {
            return Self { superiority: 0.5, p: 1.0 };
        }
        let (ranks, sum) = doubled_ranks(first, second);
        let (n, m) = (first.len(), second.len());
        let higher = (sum - n * (n + 1)) as f64 / 2.0;
        let p = if n.min(m) > MAX_ENUMERATED {
            approximate_p(&ranks, higher, (n as f64, m as f64))
        } else {
            let total: usize = ranks.iter().sum();
            if n <= m { exact_p(&ranks, n, sum) } else { exact_p(&ranks, m, total - sum) }
        };
        Self { superiority: higher / (n * m) as f64, p }
    }
}

/// Returns twice the rank of every value in ascending order, and the sum of these over the first sample. Doubled ranks
/// are integers, although equal values share the mean of their ranks.
fn doubled_ranks(first: &[f64], second: &[f64]) -> (Vec<usize>, usize) {
    let mut samples: Vec<(f64, bool)> = first.iter().map(|sample| (*sample, true)).collect();
    samples.extend(second.iter().map(|sample| (*sample, false)));
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut of_first) = (Vec::with_capacity(samples.len()), 0);
    for group in samples.chunk_by(|a, b| a.0 == b.0) {
        let rank = 2 * ranks.len() + group.len() + 1;
        ranks.extend(std::iter::repeat_n(rank, group.len()));
        of_first += rank * group.iter().filter(|(_, is_first)| *is_first).count();
    }
    (ranks, of_first)
}

/// Returns the two-sided p-value: the probability that the sum of `chosen` randomly chosen ranks is at least as far
/// from the middle of its distribution as `sum`.
fn exact_p(ranks: &[usize], chosen: usize, sum: usize) -> f64 {
    let max: usize = ranks.iter().rev().take(chosen).sum();
    // ways[k][s]: the number of choices of k ranks with sum s.
    let mut ways = vec![vec![0.0; max + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for taken in (1..=chosen).rev() {
            let (fewer, with) = ways.split_at_mut(taken);
            for (from, to) in fewer[taken - 1].iter().zip(with[0].iter_mut().skip(*rank)) {
                *to += from;
            }
        }
    }
    let ways = &ways[chosen];
    let (low, high): (f64, f64) = (ways[..=sum].iter().sum(), ways[sum..].iter().sum());
    (2.0 * low.min(high) / ways.iter().sum::<f64>()).min(1.0)
}

/// Returns the two-sided p-value by the normal approximation with continuity correction. `higher` is the number of
/// pairs in which the first sample is higher; a pair of equal values counts half.
fn approximate_p(ranks: &[usize], higher: f64, (n, m): (f64, f64)) -> f64 {
    let all = n + m;
    let ties: f64 =
        ranks.chunk_by(|a, b| a == b).map(|group| (group.len() as f64).powi(3) - group.len() as f64).sum();
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    let distance = (higher - n * m / 2.0).abs() - 0.5;
    if variance <= 0.0 { 1.0 } else { (2.0 * Normal::standard().sf(distance / variance.sqrt())).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, scipy: f64) -> bool {
        (ours / scipy - 1.0).abs() < 1e-6
    }

    // python3 -c "from scipy.stats import mannwhitneyu as u
    // a=[21.3,20.8,25.1,22.2,20.1]; b=[19.9,20.3,20.5,21.0,19.7,20.0,22.0,20.4]
    // r=u(a,b,method='exact'); print(r.statistic/40, r.pvalue, u(b,a,method='exact').pvalue)
    // print(u([5,6],[1,2,3,4,0,-1,-2,-3,-4,-5],method='exact').pvalue)"
    // 0.8 0.09324009324009325 0.09324009324009325
    // 0.030303030303030304
    #[test]
    fn rank_sum_of_few_samples_agrees_with_scipy() {
        let (a, b) = ([21.3, 20.8, 25.1, 22.2, 20.1], [19.9, 20.3, 20.5, 21.0, 19.7, 20.0, 22.0, 20.4]);
        let ranks = RankSum::of(&a, &b);
        assert!(close(ranks.superiority, 0.8) && close(ranks.p, 0.09324009324009325), "{ranks:?}");
        assert!(
            close(RankSum::of(&b, &a).p, 0.09324009324009325)
                && close(RankSum::of(&b, &a).superiority, 1.0 - 0.8)
        );
        let low: Vec<f64> = (-5..5).map(f64::from).collect();
        assert!(close(RankSum::of(&[5.0, 6.0], &low).p, 0.030303030303030304), "two above ten");
    }

    // python3 -c "import numpy as np; from scipy.stats import mannwhitneyu as u, PermutationMethod as P
    // a=[1,2,2,5]; b=[1,1,2,3,0,1,0,2]
    // r=u(a,b,method=P(n_resamples=np.inf)); print(r.statistic/32, r.pvalue)"
    // 0.734375 0.2222222222222222
    #[test]
    fn ties_agree_with_all_permutations_in_scipy() {
        let ranks = RankSum::of(&[1.0, 2.0, 2.0, 5.0], &[1.0, 1.0, 2.0, 3.0, 0.0, 1.0, 0.0, 2.0]);
        assert!(close(ranks.superiority, 0.734375) && close(ranks.p, 0.2222222222222222), "{ranks:?}");
        assert_eq!(RankSum::of(&[20.0; 3], &[20.0; 9]), RankSum { superiority: 0.5, p: 1.0 });
        assert_eq!(RankSum::of(&[20.0; 30], &[20.0; 90]), RankSum { superiority: 0.5, p: 1.0 });
        assert_eq!(RankSum::of(&[], &[20.0]), RankSum { superiority: 0.5, p: 1.0 });
    }

    // python3 -c "from scipy.stats import mannwhitneyu as u
    // a=[(7*i*i+3*i)%101 for i in range(1,41)]; b=[(5*i*i+i)%97+8 for i in range(1,201)]
    // r=u(a,b,method='asymptotic'); print(r.statistic/8000, r.pvalue)"
    // 0.4245 0.13210595942413708
    #[test]
    fn rank_sum_of_many_samples_with_ties_agrees_with_scipy() {
        let a: Vec<f64> = (1..41).map(|i| f64::from((7 * i * i + 3 * i) % 101)).collect();
        let b: Vec<f64> = (1..201).map(|i| f64::from((5 * i * i + i) % 97 + 8)).collect();
        let ranks = RankSum::of(&a, &b);
        assert!(close(ranks.superiority, 0.4245) && close(ranks.p, 0.13210595942413708), "{ranks:?}");
    }

    #[test]
    fn one_outlier_in_eight_has_only_its_rank() {
        let model: Vec<f64> = (0..80).map(|run| 20.0 + f64::from(run) / 80.0).collect();
        let mut kernel = [20.1, 20.2, 20.3, 20.4, 20.6, 20.7, 20.8, 21.5];
        let near = RankSum::of(&kernel, &model);
        kernel[7] = f64::INFINITY;
        assert_eq!(RankSum::of(&kernel, &model), near);
        assert!(near.p > 0.3, "{near:?}");
    }
}
