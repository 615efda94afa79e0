//! Finds crossovers along an axis: the better of two transports changes within a bracket that is narrowed to
//! a given precision.

/// Which of two transports is better at one point of the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Winner {
    /// The first transport is better.
    First,
    /// The second transport is better.
    Second,
    /// Neither transport is better: the difference is negligible.
    Tie,
    /// It is uncertain which transport is better, although the permitted number of samples was taken.
    Unsure,
}

/// A sampled point of the axis, with its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Value of the point on the axis.
    pub x: f64,
    /// Which of the two transports is better at this point.
    pub winner: Winner,
}

/// An interval of the axis within which the winner changes. Its ends are sampled points with different results; no
/// certain result lies between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// The last point with the result `before`.
    pub low: f64,
    /// The first point with the result `after`.
    pub high: f64,
    /// The winner up to `low`.
    pub before: Winner,
    /// The winner from `high` on.
    pub after: Winner,
}

/// The settings of a search for crossovers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossoverSearch {
    /// Whether the axis is logarithmic, so that steps of equal length are equal ratios.
    pub logarithmic: bool,
    /// The precision of a crossover. A bracket is narrow enough when the distance of its ends is at most this
    /// share of the upper end (logarithmic axis), or of the length of the axis (linear axis).
    pub precision: f64,
    /// Maximum number of points that are sampled in addition to the given points.
    pub max_points: usize,
}

impl CrossoverSearch {
    /// Samples the points of `grid` (ascending), and then points between neighbours with different winners.
    /// Returns all probes in ascending order.
    ///
    /// `round` returns a nearby value that can be sampled, and `probe` samples it.
    pub fn run<E>(
        &self,
        grid: &[f64],
        round: impl Fn(f64) -> f64,
        mut probe: impl FnMut(f64) -> Result<Probe, E>,
    ) -> Result<Vec<Probe>, E> {
        let mut probes: Vec<Probe> = grid.iter().map(|x| probe(*x)).collect::<Result<_, _>>()?;
        self.refine(&mut probes, round, probe)?;
        Ok(probes)
    }

    /// Samples points between neighbours in `probes` (ascending) that have different winners.
    pub fn refine<E>(
        &self,
        probes: &mut Vec<Probe>,
        round: impl Fn(f64) -> f64,
        mut probe: impl FnMut(f64) -> Result<Probe, E>,
    ) -> Result<(), E> {
        for _ in 0..self.max_points {
            let Some((at, x)) = self.next(probes, &round) else { break };
            probes.insert(at, probe(x)?);
        }
        Ok(())
    }

    /// Returns the next point to sample, in the widest bracket that is not narrow enough: its index among `probes`, and
    /// its value on the axis.
    fn next(&self, probes: &[Probe], round: &impl Fn(f64) -> f64) -> Option<(usize, f64)> {
        let span = probes.last()?.x - probes.first()?.x;
        let mut widest: Option<(f64, usize, f64)> = None;
        for (low, high) in disagreeing_pairs(probes) {
            // If undecided points lie between, the gaps at both ends may still shrink.
            for (left, right) in [(low, low + 1), (high - 1, high)] {
                let (a, b) = (probes[left].x, probes[right].x);
                let middle = round(self.middle(a, b));
                let wide = self.width(a, b, span);
                if wide > self.precision && a < middle && middle < b && widest.is_none_or(|(w, ..)| wide > w)
                {
                    widest = Some((wide, right, middle));
                }
            }
        }
        widest.map(|(_, at, x)| (at, x))
    }

    fn middle(&self, a: f64, b: f64) -> f64 {
        if self.logarithmic && a > 0.0 { (a * b).sqrt() } else { (a + b) / 2.0 }
    }

    fn width(&self, a: f64, b: f64, span: f64) -> f64 {
        if self.logarithmic { (b - a) / b } else { (b - a) / span }
    }
}

/// Returns the indices of neighbouring probes with different winners; probes whose winner is unsure are skipped.
fn disagreeing_pairs(probes: &[Probe]) -> Vec<(usize, usize)> {
    let sure: Vec<usize> = (0..probes.len()).filter(|at| probes[*at].winner != Winner::Unsure).collect();
    let pairs = sure.windows(2).filter(|pair| probes[pair[0]].winner != probes[pair[1]].winner);
    pairs.map(|pair| (pair[0], pair[1])).collect()
}

/// Returns the intervals of the axis within which `probes` (ascending) show a crossover.
pub fn brackets(probes: &[Probe]) -> Vec<Bracket> {
    let bracket = |(low, high): (usize, usize)| {
        let (a, b) = (probes[low], probes[high]);
        Bracket { low: a.x, high: b.x, before: a.winner, after: b.winner }
    };
    disagreeing_pairs(probes).into_iter().map(bracket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEARCH: CrossoverSearch = CrossoverSearch { logarithmic: true, precision: 0.02, max_points: 40 };

    /// Probes a curve that crosses zero at `at`; within `doubt` of it the result is undecided.
    fn curve(at: f64, doubt: f64) -> impl FnMut(f64) -> Result<Probe, ()> {
        move |x| {
            let gain = (x / at).ln();
            let winner = match gain {
                g if g.abs() < doubt => Winner::Unsure,
                g if g > 0.0 => Winner::Second,
                _ => Winner::First,
            };
            Ok(Probe { x, winner })
        }
    }

    fn found(
        search: CrossoverSearch,
        grid: &[f64],
        probe: impl FnMut(f64) -> Result<Probe, ()>,
    ) -> Vec<Bracket> {
        brackets(&search.run(grid, |x| x, probe).unwrap())
    }

    #[test]
    fn crossover_is_found_to_the_requested_precision() {
        let [border] = found(SEARCH, &[0.1, 1.0, 10.0], curve(0.73, 0.0))[..] else { panic!("one border") };
        assert!(border.low <= 0.73 && 0.73 <= border.high && border.high / border.low < 1.021, "{border:?}");
        assert_eq!((border.before, border.after), (Winner::First, Winner::Second));
    }

    #[test]
    fn bracket_is_as_wide_as_the_unsure_range() {
        let [border] = found(SEARCH, &[0.1, 1.0, 10.0], curve(0.73, 0.2))[..] else { panic!("one border") };
        assert!(border.low < 0.73 * 0.83 && border.high > 0.73 * 1.2, "{border:?}");
        assert!(
            border.low > 0.73 * 0.75 && border.high < 0.73 * 1.3,
            "both edges are looked for: {border:?}"
        );
    }

    #[test]
    fn several_crossovers_are_found_if_the_grid_shows_them() {
        let probe = |x: f64| {
            let winner = if (2.0..=5.0).contains(&x) { Winner::Second } else { Winner::Tie };
            Ok::<_, ()>(Probe { x, winner })
        };
        let borders = found(CrossoverSearch { logarithmic: false, ..SEARCH }, &[0.0, 3.0, 10.0], probe);
        assert_eq!(
            borders.iter().map(|b| (b.before, b.after)).collect::<Vec<_>>(),
            [(Winner::Tie, Winner::Second), (Winner::Second, Winner::Tie)]
        );
        assert!(
            borders[0].low < 2.0 && 2.0 <= borders[0].high && borders[1].low <= 5.0 && 5.0 < borders[1].high
        );
    }

    #[test]
    fn same_winner_everywhere_needs_no_more_points() {
        let probes = SEARCH.run(&[1.0, 2.0, 4.0], |x| x, curve(0.1, 0.0)).unwrap();
        assert_eq!((probes.len(), brackets(&probes).len()), (3, 0));
    }

    #[test]
    fn logarithmic_axis_may_include_zero() {
        let [border] = found(SEARCH, &[0.0, 10.0], curve(0.5, 0.0))[..] else { panic!("one border") };
        assert!(border.low <= 0.5 && 0.5 <= border.high && border.high / border.low < 1.03, "{border:?}");
    }

    /// Returns the sampled values in order, on an axis that only `border` divides.
    fn sampled(search: CrossoverSearch, grid: &[f64], border: f64) -> Vec<f64> {
        let mut places = Vec::new();
        let probe = |x: f64| {
            places.push(x);
            Ok::<_, ()>(Probe { x, winner: if x < border { Winner::First } else { Winner::Second } })
        };
        search.run(grid, |x| x, probe).unwrap();
        places.split_off(grid.len())
    }

    #[test]
    fn precision_is_relative_to_the_axis_or_to_the_upper_end() {
        let linear = CrossoverSearch { logarithmic: false, ..SEARCH };
        // 100/64 of an axis of 100 are less than 2 %, 100/32 are not: six halvings.
        assert_eq!(sampled(linear, &[1000.0, 1100.0], 1012.0)[..3], [1050.0, 1025.0, 1012.5]);
        assert_eq!(sampled(linear, &[1000.0, 1100.0], 1012.0).len(), 6);
        assert_eq!(sampled(SEARCH, &[1.0, 16.0], 3.0)[..2], [4.0, 2.0], "equal ratios");
        assert_eq!(sampled(SEARCH, &[0.0, 16.0], 3.0)[..2], [8.0, 4.0], "but not from zero");
    }

    #[test]
    fn widest_gap_is_searched_first() {
        let mut places = Vec::new();
        let probe = |x: f64| {
            places.push(x);
            Ok::<_, ()>(Probe {
                x,
                winner: if (1.5..30.0).contains(&x) { Winner::Second } else { Winner::First },
            })
        };
        CrossoverSearch { logarithmic: false, max_points: 2, ..SEARCH }
            .run(&[0.0, 10.0, 90.0], |x| x, probe)
            .unwrap();
        assert_eq!(places[3..], [50.0, 30.0]);
    }

    proptest! {
        #[test]
        fn any_crossing_lies_within_its_bracket(at in 0.11f64..9.9, doubt in 0.0f64..0.3, step in 0.001f64..0.05) {
            let round = |x: f64| (x / step).round() * step;
            let probes = SEARCH.run(&[0.1, 10.0], round, curve(at, doubt)).unwrap();
            prop_assert!(probes.windows(2).all(|pair| pair[0].x < pair[1].x), "{probes:?}");
            prop_assert!(probes.len() <= 2 + SEARCH.max_points);
            for border in brackets(&probes) {
                prop_assert!(border.low <= at && at <= border.high, "{border:?}");
            }
        }
    }
}
