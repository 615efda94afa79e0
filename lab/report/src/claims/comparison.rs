//! Claims that a transport is faster: compared point by point, corrected for the number of comparisons.

use hol_measure::{CONFIDENCE, Comparison, adjust_by_holm};
use serde::Deserialize;

use super::view::{compare, compare_times};
use super::{ComparedWith, Finding, View};
use crate::data::{Cell, Filter};
use crate::survey::NEGLIGIBLE;
use hol_lab::Metric;

/// The claim that each of `transports` is faster than another transport, or than itself at other axis values: it has
/// lower times, or higher throughput.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FasterTransport {
    pub(super) transports: Vec<String>,
    #[serde(rename = "than")]
    pub(super) reference: ComparedWith,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The fraction of the points at which the transport has to be significantly faster; at no point may it be
    /// significantly slower.
    #[serde(default = "default_share")]
    share: f64,
    /// The metric to which the claim refers.
    #[serde(default)]
    metric: Metric,
    /// Whether a transport with mostly aborted runs is worse than a transport whose runs complete; otherwise such
    /// points are not compared.
    #[serde(default)]
    aborted_is_worse: bool,
}

/// The claim that two transports, named with their stacks, have different means.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DifferentMeans {
    pub(super) left: String,
    right: String,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The metric to which the claim refers.
    #[serde(default)]
    metric: Metric,
}

const fn default_share() -> f64 {
    0.9
}

/// A point at which two transports were compared.
struct Pair<'a> {
    cell: &'a Cell,
    comparison: Comparison,
    significant: bool,
}

/// The outcome of a comparison at one point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gain {
    Better,
    Worse,
    /// No gain: the difference is significantly below the margin.
    Even,
    Open,
}

impl FasterTransport {
    /// Evaluates the claim. It fails if the transport is significantly worse at one point, by more than a negligible
    /// difference, or if too few points would be better even if all undecided points were. It holds if enough points
    /// are better.
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells = view.cells_of(&self.transports, &self.at);
        let other = |cell: &Cell| view.compared_cell(cell, &self.reference);
        let (aborted, cells): (Vec<&Cell>, Vec<&Cell>) = cells
            .into_iter()
            .partition(|cell| other(cell).is_some_and(|other| self.differ_in_aborts(cell, other)));
        let pairs = pairs(&cells, |cell| self.compare(cell, other(cell)?));
        let points = pairs.len() + aborted.len();
        if points == 0 {
            return Finding::no_points();
        }
        let count = |wanted| pairs.iter().filter(|pair| self.gain(pair) == wanted).count();
        let [mut faster, mut slower, even, open] =
            [Gain::Better, Gain::Worse, Gain::Even, Gain::Open].map(count);
        let own = aborted.iter().filter(|cell| !cell.is_mostly_completed()).count();
        slower += own;
        faster += aborted.len() - own;
        let needed = self.share * points as f64;
        let holds = if slower > 0 || ((faster + open) as f64) < needed {
            Some(false)
        } else {
            (faster as f64 >= needed).then_some(true)
        };
        let [better, worse] = self.metric.info().comparatives;
        let of_aborted = match aborted.len() {
            0 => String::new(),
            all => format!(
                "; a transport whose runs were mostly aborted counts as {worse}: {} at {} of these points, the compared transport at {own}",
                self.reference,
                all - own
            ),
        };
        let reference = self.reference.to_string();
        let text = format!(
            "{points} points: {better} than {} at {faster}, {worse} at {slower}, no gain at {even}, undecided at {open}{of_aborted}{}",
            self.reference,
            describe_uncompared_points(self.metric, &cells, &reference, other),
        );
        let used = pairs.iter().map(|pair| pair.comparison.difference.n).sum();
        let all = pairs.iter().map(|pair| pair.cell.runs.len() as u64).sum();
        let row = |cell: &&Cell| {
            let which = if cell.is_mostly_completed() { &reference } else { &cell.transport };
            format!("{} − {reference}: {which} was aborted at {}", cell.transport, cell.describe_conditions())
        };
        let mut lines: Vec<String> = aborted.iter().map(row).collect();
        lines.extend(rows(self.metric, pairs, &reference));
        let rows = lines;
        Finding { holds, ..Finding::unknown(text) }.with_used_repetitions(used, all).with_rows(rows)
    }

    /// Returns the difference of two means. For times, the p-value is that of their ratio, unless ratio and difference
    /// disagree on the faster transport. Ratios are closer to a normal distribution, so a few more timeouts do not
    /// change the result.
    fn compare(&self, cell: &Cell, other: &Cell) -> Option<Comparison> {
        let difference = compare(self.metric, cell, other, 0.0)?;
        let is_time = self.metric.info().unit == "ms";
        let ratio = is_time.then(|| compare_times(self.metric, cell, other, 0.0)).flatten();
        let agrees = |ratio: &Comparison| ratio.difference.mean * difference.difference.mean > 0.0;
        Some(match ratio.filter(agrees) {
            Some(ratio) => Comparison { p: ratio.p, ..difference },
            None => difference,
        })
    }

    /// Returns whether most runs were aborted with one of the two transports, but not with the other.
    fn differ_in_aborts(&self, cell: &Cell, other: &Cell) -> bool {
        self.aborted_is_worse && cell.is_mostly_completed() != other.is_mostly_completed()
    }

    fn gain(&self, pair: &Pair<'_>) -> Gain {
        let difference = pair.comparison.difference;
        let [low, high] = [difference.low(), difference.high()].map(|end| self.metric.gain(end));
        let none = pair.cell.mean_of(self.metric).map_or(0.0, |mean| NEGLIGIBLE * mean.mean);
        match self.metric.gain(difference.mean) {
            gain if pair.significant && gain > 0.0 => Gain::Better,
            gain if pair.significant && gain < -none => Gain::Worse,
            _ if low.max(high) <= none => Gain::Even,
            _ => Gain::Open,
        }
    }
}

/// Describes the points that could not be compared because a transport did not carry the load or has no steady state.
fn describe_uncompared_points<'a>(
    metric: Metric,
    cells: &[&'a Cell],
    reference: &str,
    other: impl Fn(&'a Cell) -> Option<&'a Cell>,
) -> String {
    let stopped = |cell: &Cell| cell.mean_of(metric).is_none();
    let compared = |(cell, other): &(&Cell, &Cell)| compare(metric, cell, other, 0.0).is_some();
    let pairs =
        || cells.iter().filter_map(|cell| Some((*cell, other(cell)?))).filter(move |pair| !compared(pair));
    let count = |cell_stopped, other_stopped| {
        pairs()
            .filter(|(cell, other)| (stopped(cell), stopped(other)) == (cell_stopped, other_stopped))
            .count()
    };
    match (count(true, true), count(true, false), count(false, true)) {
        (0, 0, 0) => String::new(),
        (neither, less, more) => format!(
            "; {} more points cannot be compared, because a transport did not carry the load or has no steady state: both transports at {neither} points, only the compared one at {less}, only {reference} at {more}",
            neither + less + more
        ),
    }
}

impl DifferentMeans {
    /// Judges the claim by a test at every point that both transports have.
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells: Vec<&Cell> = view.data.cells_of_transport(&self.left, &self.at).collect();
        let pairs = pairs(&cells, |cell| {
            compare(self.metric, cell, view.data.with_same_conditions(cell, &self.right)?, 0.0)
        });
        if pairs.is_empty() {
            return Finding::no_points();
        }
        let different = pairs.iter().filter(|pair| pair.significant).count();
        let text =
            format!("{} and {} differ at {different} of {} points", self.left, self.right, pairs.len());
        Finding::new(2 * different > pairs.len(), text).with_rows(rows(self.metric, pairs, &self.right))
    }
}

/// Compares all points that can be compared; corrects the p-values for their number (Holm).
fn pairs<'a>(cells: &[&'a Cell], compare: impl Fn(&Cell) -> Option<Comparison>) -> Vec<Pair<'a>> {
    let compared: Vec<(&Cell, Comparison)> =
        cells.iter().filter_map(|cell| Some((*cell, compare(cell)?))).collect();
    let p = adjust_by_holm(&compared.iter().map(|(_, comparison)| comparison.p).collect::<Vec<_>>());
    let judge = |((cell, comparison), p): ((&'a Cell, Comparison), f64)| {
        let significant = p < 1.0 - CONFIDENCE && comparison.difference.mean != 0.0;
        Pair { cell, comparison, significant }
    };
    compared.into_iter().zip(p).map(judge).collect()
}

/// Describes the comparisons, the least favourable first.
fn rows(metric: Metric, mut pairs: Vec<Pair<'_>>, reference: &str) -> Vec<String> {
    let gain = |pair: &Pair<'_>| metric.gain(pair.comparison.difference.mean);
    pairs.sort_by(|a, b| gain(a).total_cmp(&gain(b)));
    let unit = metric.info().unit;
    let row = |pair: &Pair<'_>| {
        let sign = if pair.significant { "" } else { " (not significant)" };
        let (cell, difference) = (pair.cell, pair.comparison.difference);
        format!(
            "{} − {reference}: {difference} {unit} at {}{sign}",
            cell.transport,
            cell.describe_conditions()
        )
    };
    pairs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    fn check(share: f64) -> FasterTransport {
        FasterTransport {
            transports: vec!["SCTP-8".into()],
            reference: ComparedWith::Transport("TCP".into()),
            at: Filter::default(),
            share,
            metric: Metric::default(),
            aborted_is_worse: false,
        }
    }

    #[test]
    fn claim_holds_if_the_transport_is_faster_at_every_point() {
        let data = dataset(vec![
            cell("SCTP-8", 1.0, 100.0, &[21.0, 21.1, 20.9, 21.0]),
            cell("TCP", 1.0, 100.0, &[23.0, 23.2, 22.8, 23.1]),
        ]);
        let finding = check(0.9).evaluate(&view(&data));
        assert_eq!(finding.holds, Some(true), "{finding:?}");
        assert!(finding.rows[0].contains("SCTP-8 − TCP: -2.0"), "{finding:?}");
    }

    #[test]
    fn aborted_measurement_counts_as_slower() {
        let tcp = cell("TCP", 5.0, 100.0, &[135.0, 136.0, 134.0, 135.5]);
        let mut sctp = cell("SCTP-8", 5.0, 100.0, &[25.0, 25.1, 24.9, 25.0]);
        (sctp.stop_reason, sctp.ended_early) =
            (Some("behind schedule".into()), vec![true, true, true, false]);
        let data = dataset(vec![sctp, tcp]);
        let check = FasterTransport { aborted_is_worse: true, ..check(0.9) };
        let finding = check.evaluate(&view(&data));
        assert_eq!(finding.holds, Some(false), "{finding:?}");
        assert!(
            finding.text.contains("counts as slower: TCP at 0 of these points, the compared transport at 1"),
            "{finding:?}"
        );
    }

    #[test]
    fn one_slower_point_refutes_the_claim() {
        let data = dataset(vec![
            cell("SCTP-8", 1.0, 100.0, &[21.0, 21.1, 20.9, 21.0]),
            cell("TCP", 1.0, 100.0, &[23.0, 23.2, 22.8, 23.1]),
            cell("SCTP-8", 5.0, 100.0, &[69.0, 70.1, 69.9, 70.0]),
            cell("TCP", 5.0, 100.0, &[57.0, 57.2, 56.8, 57.1]),
        ]);
        let finding = check(0.1).evaluate(&view(&data));
        assert_eq!(finding.holds, Some(false), "{finding:?}");
        assert!(finding.text.contains("faster than TCP at 1, slower at 1"), "{finding:?}");
    }

    #[test]
    fn undecided_point_decides_nothing_and_no_gain_refutes() {
        let of = |sctp: &[f64]| {
            let data = dataset(vec![
                cell("SCTP-8", 1.0, 100.0, sctp),
                cell("TCP", 1.0, 100.0, &[23.0, 23.2, 22.8, 23.1]),
            ]);
            check(0.9).evaluate(&view(&data)).holds
        };
        assert_eq!(of(&[21.0, 25.0, 20.0, 24.0]), None);
        assert_eq!(of(&[23.0, 23.2, 22.8, 23.1]), Some(false), "equal in each repetition");
    }

    #[test]
    fn claim_without_points_is_undecided() {
        assert_eq!(check(0.9).evaluate(&view(&dataset(vec![]))).holds, None);
    }
}
