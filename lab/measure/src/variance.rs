//! Analysis of variance, two-way with fixed effects: which of two factors matters more.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// Samples that differ in two factors only. The indices are the level of the first factor, the level of the second
/// factor, and the repetition. The number of repetitions is the same everywhere.
pub type Block = Vec<Vec<Vec<f64>>>;

/// The variance within blocks, by source.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct VarianceAnalysis {
    /// Variance explained by the first factor.
    pub first: VarianceComponent,
    /// Variance explained by the second factor.
    pub second: VarianceComponent,
    /// Variance explained only by the combination of both factors.
    pub interaction: VarianceComponent,
    /// Variance between repetitions.
    pub error: VarianceComponent,
}

/// The part of the variance that one source explains.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct VarianceComponent {
    /// Sum of squares.
    pub squares: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl VarianceAnalysis {
    /// Adds up the components of all blocks. Differences between blocks are not attributed to a factor. Returns
    /// `None` if the samples do not vary, or if there are too few repetitions to estimate the error.
    pub fn pooled(blocks: &[Block]) -> Option<Self> {
        let variance = blocks.iter().map(of_block).fold(Self::default(), |total, block| Self {
            first: total.first + block.first,
            second: total.second + block.second,
            interaction: total.interaction + block.interaction,
            error: total.error + block.error,
        });
        (variance.total() > 0.0 && variance.error.freedom > 0.0).then_some(variance)
    }

    /// Returns the share of the variance that `part` explains: eta squared.
    pub fn share(&self, part: VarianceComponent) -> f64 {
        part.squares / self.total()
    }

    /// Returns Fisher's F for `part`: its mean square divided by the mean square of the error.
    pub fn f(&self, part: VarianceComponent) -> f64 {
        (part.squares / part.freedom) / (self.error.squares / self.error.freedom)
    }

    /// Returns the probability of an F this large or larger if `part` had no effect.
    pub fn p(&self, part: VarianceComponent) -> f64 {
        let null = FisherSnedecor::new(part.freedom, self.error.freedom);
        null.map_or(f64::NAN, |null| null.sf(self.f(part)))
    }

    fn total(&self) -> f64 {
        [self.first, self.second, self.interaction, self.error].iter().map(|part| part.squares).sum()
    }
}

impl std::ops::Add for VarianceComponent {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { squares: self.squares + other.squares, freedom: self.freedom + other.freedom }
    }
}

fn of_block(block: &Block) -> VarianceAnalysis {
    let (rows, columns) = (block.len(), block.first().map_or(0, Vec::len));
    let repetitions = block.iter().flatten().map(Vec::len).next().unwrap_or(0);
    let alike =
        |row: &Vec<Vec<f64>>| row.len() == columns && row.iter().all(|cell| cell.len() == repetitions);
    assert!(block.iter().all(alike), "a block has equally many repetitions everywhere");
    let cells: Vec<Vec<f64>> = block.iter().map(|row| row.iter().map(|cell| mean(cell)).collect()).collect();
    let by_row: Vec<f64> = cells.iter().map(|row| mean(row)).collect();
    let by_column: Vec<f64> =
        (0..columns).map(|at| mean(&cells.iter().map(|row| row[at]).collect::<Vec<_>>())).collect();
    let grand = mean(&by_row);

    let [n, r, c] = [repetitions, rows, columns].map(|count| count as f64);
    let part = |squares: f64, freedom: f64| VarianceComponent { squares, freedom };
    let first = part(n * c * squared_distances(&by_row, grand), r - 1.0);
    let second = part(n * r * squared_distances(&by_column, grand), c - 1.0);
    let between = n * cells.iter().map(|row| squared_distances(row, grand)).sum::<f64>();
    let samples = block.iter().flatten().zip(cells.iter().flatten());
    let error = samples.map(|(cell, mean)| squared_distances(cell, *mean)).sum();
    VarianceAnalysis {
        first,
        second,
        interaction: part(between - first.squares - second.squares, (r - 1.0) * (c - 1.0)),
        error: part(error, r * c * (n - 1.0)),
    }
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// Returns the sum of the squared distances of the samples from `centre`.
fn squared_distances(samples: &[f64], centre: f64) -> f64 {
    samples.iter().map(|x| (x - centre) * (x - centre)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, scipy: f64) -> bool {
        (ours / scipy - 1.0).abs() < 1e-9
    }

    // python3 -c "from scipy.stats import f_oneway; print(*f_oneway([41,43,39,44], [45,47,46,49], [40,42,44,41]))"
    // 9.302325581395335 0.0064516545795524375
    #[test]
    fn one_factor_agrees_with_scipy() {
        let block = [[41.0, 43.0, 39.0, 44.0], [45.0, 47.0, 46.0, 49.0], [40.0, 42.0, 44.0, 41.0]];
        let block: Block = block.map(|level| vec![level.to_vec()]).to_vec();
        let variance = VarianceAnalysis::pooled(&[block]).unwrap();
        assert!(close(variance.f(variance.first), 9.302325581395335));
        assert!(close(variance.p(variance.first), 0.0064516545795524375));
    }

    /// Returns the samples of the next two tests.
    fn block() -> Block {
        let block = [
            [[41.0, 43.0, 39.0], [44.0, 48.0, 47.0]],
            [[35.0, 31.0, 36.0], [45.0, 41.0, 44.0]],
            [[40.0, 39.0, 38.0], [50.0, 47.0, 49.0]],
        ];
        block.map(|row| row.map(|cell| cell.to_vec()).to_vec()).to_vec()
    }

    // The residual sums of squares that a linear model gains when a factor is removed from it: scipy.linalg.lstsq on indicator
    // variables, and scipy.stats.f.sf.
    #[test]
    fn two_factors_agree_with_linear_models_in_scipy() {
        let variance = VarianceAnalysis::pooled(&[block()]).unwrap();
        for (part, share, f, p) in [
            (variance.first, 0.22344893795751827, 13.492753623188406, 0.0008504882945338999),
            (variance.second, 0.6395055802232089, 77.23188405797103, 1.4188292072292548e-06),
            (variance.interaction, 0.037681507260290466, 2.2753623188405836, 0.14527316461258885),
        ] {
            assert!(close(variance.share(part), share), "{share}");
            assert!(close(variance.f(part), f), "{f}");
            assert!(close(variance.p(part), p), "{p}");
        }
    }

    #[test]
    fn difference_between_blocks_is_no_effect() {
        let mut higher = block();
        higher.iter_mut().flatten().flatten().for_each(|sample| *sample += 100.0);
        let [one, two] =
            [vec![block()], vec![block(), higher]].map(|blocks| VarianceAnalysis::pooled(&blocks).unwrap());
        assert!(close(two.share(two.first), one.share(one.first)));
        assert_eq!(two.error.freedom, 2.0 * one.error.freedom);
    }

    #[test]
    fn variance_needs_repetitions() {
        assert_eq!(VarianceAnalysis::pooled(&[]), None);
        assert_eq!(VarianceAnalysis::pooled(&[vec![vec![vec![1.0], vec![2.0]]]]), None);
    }

    // python3 -c "from scipy.stats import f_oneway as f; print(*f([1,2,3,4],[3,4,6,7]))"
    // scipy 1.17.1: 5.0 0.06670680196204089
    #[test]
    fn either_factor_may_have_one_level() {
        let samples = [vec![1.0, 2.0, 3.0, 4.0], vec![3.0, 4.0, 6.0, 7.0]];
        let first: Block = samples.iter().map(|level| vec![level.clone()]).collect();
        let second: Block = vec![samples.to_vec()];
        for (block, pick) in [(first, true), (second, false)] {
            let variance = VarianceAnalysis::pooled(&[block]).unwrap();
            let part = if pick { variance.first } else { variance.second };
            assert!(close(variance.f(part), 5.0) && close(variance.p(part), 0.06670680196204089), "{part:?}");
        }
    }

    #[test]
    #[should_panic(expected = "equally many repetitions")]
    fn incomplete_block_is_refused() {
        let _ = VarianceAnalysis::pooled(&[vec![
            vec![vec![1.0, 2.0], vec![1.0]],
            vec![vec![1.0, 2.0], vec![1.0, 2.0]],
        ]]);
    }
}
