//! Fisher's exact test: whether one share is larger than another.

use statrs::distribution::{Discrete, Hypergeometric};

/// Relative difference up to which two probabilities count as equal, because of rounding.
const TOLERANCE: f64 = 1e-7;

/// Returns the two-sided p-value: the probability that two samples of the same population have shares at
/// least this different. Each share is `(with, of)`, where `of` is the total number.
///
/// # Panics
/// If `with` is larger than `of`.
///
/// ```
/// // 3 of 40 runs failed with the one, 90 of 400 with the other.
/// assert!((hol_measure::fisher_exact((3, 40), (90, 400)) - 0.0251).abs() < 1e-4);
/// ```
pub fn fisher_exact(first: (u64, u64), second: (u64, u64)) -> f64 {
    let with = first.0 + second.0;
    let law = Hypergeometric::new(first.1 + second.1, with, first.1).expect("a count is at most its total");
    let seen = law.pmf(first.0) * (1.0 + TOLERANCE);
    let possible = with.saturating_sub(second.1)..=with.min(first.1);
    possible.map(|count| law.pmf(count)).filter(|chance| *chance <= seen).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // python3 -c "from scipy.stats import fisher_exact as f
    // for t in ([3,37],[90,310]), ([0,8],[4,76]), ([0,8],[40,40]), ([8,0],[80,0]): print(f(t).pvalue)"
    // 0.025148505378216873 1.0 0.0070671356158835495 1.0
    #[test]
    fn fisher_exact_agrees_with_scipy() {
        for (first, second, scipy) in [
            ((3, 40), (90, 400), 0.025148505378216873),
            ((0, 8), (4, 80), 1.0),
            ((0, 8), (40, 80), 0.0070671356158835495),
            ((8, 8), (80, 80), 1.0),
        ] {
            let ours = fisher_exact(first, second);
            assert!((ours / scipy - 1.0).abs() < 1e-9, "{ours} for {scipy}");
            assert!((fisher_exact(second, first) / ours - 1.0).abs() < 1e-9);
        }
        assert_eq!(fisher_exact((0, 0), (3, 5)), 1.0, "without any there is no share");
    }
}
