//! The mean of one long run by batch means, because neighbouring messages share their losses.

use crate::Interval;

/// Minimum number of batches. With fewer batches the variance of their means is too uncertain.
const MIN_BATCHES: usize = 20;

/// The mean of a run by the method of batch means: the run is cut into batches that are long enough to be nearly
/// independent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchMeans {
    /// The mean over the batches, with its confidence interval.
    pub interval: Interval,
    /// Number of samples in a batch.
    pub batch_size: usize,
    /// Correlation of each batch's mean with that of the next batch (lag-1 autocorrelation).
    pub lag1: f64,
}

impl BatchMeans {
    /// Returns the mean of a run by batch means. Leaves out the first `warm_up` samples, and cuts the others, in
    /// order, into `batches` equal parts.
    ///
    /// If some samples remain, further samples at the start are left out. Returns `None` with fewer than 20
    /// batches, or fewer samples than batches.
    pub fn of(samples: &[f64], warm_up: usize, batches: usize, confidence: f64) -> Option<Self> {
        let kept = samples.get(warm_up..)?;
        let batch = kept.len().checked_div(batches).filter(|batch| *batch > 0 && batches >= MIN_BATCHES)?;
        let kept = &kept[kept.len() - batch * batches..];
        let means: Vec<f64> =
            kept.chunks(batch).map(|part| part.iter().sum::<f64>() / batch as f64).collect();
        Some(Self { interval: Interval::of(&means, confidence)?, batch_size: batch, lag1: lag1(&means) })
    }

    /// Returns whether the batches are too short, so that their means still depend on each other (two-sided test at
    /// about 5 %).
    pub fn are_correlated(&self) -> bool {
        self.lag1.abs() > 1.96 / (self.interval.n as f64).sqrt()
    }
}

/// Returns the lag-1 autocorrelation; 0 if all samples are equal.
fn lag1(samples: &[f64]) -> f64 {
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    let products: f64 = samples.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use hol_base::Seed;

    use super::*;

    /// Returns a first-order autoregressive series around 10 with unit variance, whose exact variance of the mean is known.
    fn series(correlation: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut rng = Seed(seed).rng();
        let mut x = 0.0;
        let noise = (12.0 * (1.0 - correlation * correlation)).sqrt();
        (0..n)
            .map(|_| {
                x = correlation * x + noise * (rng.uniform() - 0.5);
                10.0 + x
            })
            .collect()
    }

    #[test]
    fn intervals_over_batches_cover_the_mean_of_a_correlated_run() {
        let runs = 400;
        let covered = |of: fn(&[f64]) -> Interval| {
            (0..runs).filter(|seed| of(&series(0.9, 8_000, *seed)).contains(10.0)).count()
        };
        let batches = covered(|run| BatchMeans::of(run, 100, 20, 0.95).unwrap().interval);
        let independent = covered(|run| Interval::of(run, 0.95).unwrap());
        // 400 runs at 95 %: 380 ± 4.4; the correlation makes the naive interval 4.4 times too short.
        assert!((360..=395).contains(&batches), "{batches} of {runs}");
        assert!(independent < 200, "{independent} of {runs}");
    }

    #[test]
    fn too_short_batches_are_reported_as_correlated() {
        let run = series(0.99, 20_000, 1);
        assert!(BatchMeans::of(&run, 0, 2_000, 0.95).unwrap().are_correlated());
        assert!(!BatchMeans::of(&run, 0, 20, 0.95).unwrap().are_correlated());
    }

    #[test]
    fn warm_up_and_incomplete_batch_are_excluded() {
        let run: Vec<f64> = [1000.0; 7].into_iter().chain([1.0; 40]).collect();
        let means = BatchMeans::of(&run, 5, 20, 0.95).unwrap();
        assert_eq!((means.interval.mean, means.batch_size, means.lag1), (1.0, 2, 0.0));
        assert_eq!(BatchMeans::of(&run, 5, 19, 0.95), None);
        assert_eq!(BatchMeans::of(&run, 50, 20, 0.95), None);
        assert_eq!(BatchMeans::of(&run[..10], 0, 20, 0.95), None);
    }

    /// By hand: around the mean of 2.5 the squares sum to 5, and the products of neighbours sum to 0.75 - 0.25 + 0.75.
    #[test]
    fn lag1_is_the_correlation_of_neighbours() {
        assert_eq!(lag1(&[1.0, 2.0, 3.0, 4.0]), 0.25);
        assert_eq!(lag1(&[7.0; 4]), 0.0);
    }
}
