//! Finds where two curves cross, for example the rate above which SCTP is faster than TCP.

use hol_base::Seed;
use serde::{Deserialize, Serialize};

/// The point on a logarithmic axis at which the sign of a difference changes, with its bootstrap interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Crossover {
    /// Position on the axis at which the means cross.
    pub x: f64,
    /// Lower end of the confidence interval; the left end of the axis if the crossing may lie beyond it.
    pub low: f64,
    /// Upper end of the confidence interval; the right end of the axis if the crossing may lie beyond it.
    pub high: f64,
}

/// Number of bootstrap resamples of the repetitions.
const RESAMPLES: usize = 2_000;

impl Crossover {
    /// Returns the first point at which `first - second` changes sign, between the values `x` (positive, ascending).
    ///
    /// `first` and `second` have one slice of repetitions for each `x`, paired by seed. The bootstrap draws
    /// pairs with replacement, separately for each `x`. `None` if the means do not cross.
    ///
    /// # Panics
    /// If a level has no repetitions, or the two curves differ in shape.
    pub fn of(
        x: &[f64],
        first: &[Vec<f64>],
        second: &[Vec<f64>],
        confidence: f64,
        seed: Seed,
    ) -> Option<Self> {
        let differences: Vec<Vec<f64>> = first.iter().zip(second).map(|(a, b)| subtract(a, b)).collect();
        assert!(x.len() == first.len() && x.len() == second.len(), "one level for each x");
        let all: Vec<f64> = differences.iter().map(|d| mean(d.iter().copied())).collect();
        let crossing = sign_change(x, &all)?;
        let mut rng = seed.derive("crossover").rng();
        let mut resample = || {
            let drawn = differences
                .iter()
                .map(|level| mean((0..level.len()).map(|_| level[rng.below(level.len() as u64) as usize])));
            let drawn: Vec<f64> = drawn.collect();
            // Without a crossing, the sign of the whole curve shows beyond which end it would lie.
            let beyond = if (drawn[0] > 0.0) == (all[0] > 0.0) { x[x.len() - 1] } else { x[0] };
            sign_change(x, &drawn).unwrap_or(beyond)
        };
        let mut found: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
        found.sort_unstable_by(f64::total_cmp);
        let outside = ((1.0 - confidence) / 2.0 * RESAMPLES as f64) as usize;
        Some(Self { x: crossing, low: found[outside], high: found[RESAMPLES - 1 - outside] })
    }
}

fn subtract(a: &[f64], b: &[f64]) -> Vec<f64> {
    assert_eq!(a.len(), b.len(), "paired samples come in pairs");
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn mean(samples: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = samples.len() as f64;
    samples.sum::<f64>() / n
}

/// Returns the first zero of the curve through the points, which is piecewise linear over the logarithm of x.
fn sign_change(x: &[f64], y: &[f64]) -> Option<f64> {
    let at = (1..y.len()).find(|&i| y[i - 1] != 0.0 && (y[i - 1] > 0.0) != (y[i] > 0.0))?;
    let share = y[at - 1] / (y[at - 1] - y[at]);
    Some(x[at - 1] * (x[at] / x[at - 1]).powf(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [f64; 5] = [1.0, 3.0, 10.0, 30.0, 100.0];

    fn curve(means: [f64; 5], spread: f64) -> Vec<Vec<f64>> {
        let noise = [-1.0, 0.6, 0.2, -0.7, 0.9, 0.4, -0.4];
        means.iter().map(|mean| noise.iter().map(|n| mean + spread * n).collect()).collect()
    }

    #[test]
    fn two_curves_cross_between_their_neighbours() {
        let (sctp, tcp) = (curve([40.0, 38.0, 28.0, 22.0, 21.0], 0.5), curve([24.0; 5], 0.0));
        let crossover = Crossover::of(&RATES, &sctp, &tcp, 0.95, Seed(1)).unwrap();
        // Differences 4 at 10/s and -2 at 30/s: two thirds of the way over log x.
        assert!((crossover.x - 10.0 * 3f64.powf(2.0 / 3.0)).abs() < 1e-9);
        assert!(crossover.low < crossover.x && crossover.x < crossover.high, "{crossover:?}");
        assert!(crossover.low > 15.0 && crossover.high < 30.0, "{crossover:?}");
        assert_eq!(
            Crossover::of(&RATES, &sctp, &tcp, 0.95, Seed(1)),
            Some(crossover),
            "same seed, same interval"
        );
    }

    #[test]
    fn an_uncertain_crossing_reaches_to_the_end_of_the_axis() {
        let (sctp, tcp) = (curve([40.0, 38.0, 28.0, 25.0, 23.9], 0.8), curve([24.0; 5], 0.0));
        let crossover = Crossover::of(&RATES, &sctp, &tcp, 0.95, Seed(1)).unwrap();
        assert_eq!(crossover.high, 100.0);
    }

    #[test]
    fn curves_that_keep_their_order_do_not_cross() {
        let (sctp, tcp) = (curve([40.0, 38.0, 28.0, 26.0, 25.0], 0.5), curve([24.0; 5], 0.0));
        assert_eq!(Crossover::of(&RATES, &sctp, &tcp, 0.95, Seed(1)), None);
    }

    /// Two repetitions at 10/s, and all others equal: a quarter of the resamples contain the one twice, a quarter the other.
    #[test]
    fn crossover_interval_ends_are_quantiles_of_the_resamples() {
        let first = [vec![4.0; 2], vec![3.0; 2], vec![2.0, 0.5], vec![-1.0; 2], vec![-2.0; 2]];
        let second = vec![vec![0.0; 2]; 5];
        let ends = |confidence| {
            let crossover = Crossover::of(&RATES, &first, &second, confidence, Seed(1)).unwrap();
            [crossover.low, crossover.x, crossover.high]
        };
        let at = |difference: f64| 10.0 * 3f64.powf(difference / (difference + 1.0));
        for (confidence, differences) in [(0.9, [0.5, 1.25, 2.0]), (0.6, [0.5, 1.25, 2.0]), (0.4, [1.25; 3])]
        {
            for (end, difference) in ends(confidence).into_iter().zip(differences) {
                assert!((end - at(difference)).abs() < 1e-9, "{confidence}: {:?}", ends(confidence));
            }
        }
    }

    #[test]
    fn levels_may_differ_in_repetitions() {
        let (first, second) = ([vec![2.0], vec![-1.0, -1.0, -1.0]], [vec![0.0], vec![0.0; 3]]);
        let crossover = Crossover::of(&[1.0, 10.0], &first, &second, 0.95, Seed(1)).unwrap();
        assert!((crossover.x - 10f64.powf(2.0 / 3.0)).abs() < 1e-9, "{crossover:?}");
    }

    #[test]
    fn zero_in_the_curve_is_a_crossing_but_not_at_its_start() {
        let x = [1.0, 10.0, 100.0];
        assert_eq!(sign_change(&x, &[1.0, 0.0, -1.0]), Some(10.0));
        let between = sign_change(&x, &[0.0, -1.0, 1.0]).unwrap();
        assert!((between - 10f64.powf(1.5)).abs() < 1e-9, "{between}");
        assert_eq!(sign_change(&x, &[0.0, 1.0, 1.0]), None);
    }
}
