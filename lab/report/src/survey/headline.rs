//! The answer of a survey in sentences: which transport is better, by how much, and where.

use hol_measure::benjamini_hochberg;

use super::transport_comparison::{NEGLIGIBLE, Outcome, TransportComparison};
use super::{Axis, Survey, outages};
use crate::plot::number;

/// The largest number of ranges in a sentence.
const MAX_RANGES: usize = 3;

/// The sentences that answer which transport is better, by how much, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headline {
    /// The effect of a disruption of the path, one sentence for each transport.
    pub outages: Vec<String>,
    /// The comparison of each transport with the first transport, one sentence each.
    pub main_sentences: Vec<String>,
    /// One sentence for each combination of values of the axes other than the horizontal one, if there are several.
    pub lines: Vec<String>,
}

/// A transport compared with the reference along the horizontal axis, everything else being equal.
struct Line<'s, 'd> {
    /// The survey of the reference and this transport.
    survey: &'s Survey<'d>,
    /// The steps of the other axes.
    other_steps: Vec<usize>,
    /// The comparisons at the steps of the horizontal axis, ascending.
    contests: Vec<(usize, TransportComparison<'d>)>,
}

impl Headline {
    /// Returns the headline of a survey; empty with fewer than two transports.
    pub fn of(survey: &Survey<'_>) -> Self {
        let pairs: Vec<Survey<'_>> =
            (1..survey.transports.len()).map(|challenger| survey.pair(challenger)).collect();
        let lines = lines(&pairs);
        let mut headline = Self { outages: outages::describe_outages(survey), ..Self::default() };
        for pair in &pairs {
            let is_of_pair =
                |line: &&Line<'_, '_>| std::ptr::eq(line.survey, pair) && !line.contests.is_empty();
            let mine: Vec<&Line<'_, '_>> = lines.iter().filter(is_of_pair).collect();
            match mine.as_slice() {
                [] => {}
                [only] => headline.main_sentences.push(only.sentence() + "."),
                several => {
                    headline.main_sentences.push(tally(several));
                    headline.lines.extend(several.iter().map(|line| {
                        format!("{}: {}.", pair.describe_steps(1, &line.other_steps), line.sentence())
                    }));
                }
            }
        }
        headline
    }
}

/// Compares the transports of each pair. The p-values are adjusted for the family of all tests: of the stated
/// differences at most one in twenty is due to chance.
fn lines<'s, 'd>(pairs: &'s [Survey<'d>]) -> Vec<Line<'s, 'd>> {
    let mut lines: Vec<Line<'s, 'd>> = pairs.iter().flat_map(lines_of_pair).collect();
    let family = |lines: &[Line<'_, '_>]| -> Vec<f64> {
        lines.iter().flat_map(|line| &line.contests).filter_map(|(_, contest)| contest.p_value()).collect()
    };
    let mut adjusted = benjamini_hochberg(&family(&lines)).into_iter();
    for (_, contest) in lines.iter_mut().flat_map(|line| &mut line.contests) {
        if let Some(p) = contest.p_value().and_then(|_| adjusted.next()) {
            *contest = contest.clone().adjusted(p);
        }
    }
    lines
}

fn lines_of_pair<'s, 'd>(survey: &'s Survey<'d>) -> Vec<Line<'s, 'd>> {
    let steps = survey
        .axes
        .first()
        .map_or(vec![Vec::new()], |axis| axis.ascending().into_iter().map(|step| vec![step]).collect());
    let line = |others: Vec<usize>| {
        let contest = |step: &Vec<usize>| {
            let at = [step.clone(), others.clone()].concat();
            let cells = [1, 0].map(|transport| survey.at(transport, &at));
            let [Some(cell), Some(reference)] = cells else { return None };
            Some((
                step.first().copied().unwrap_or(0),
                TransportComparison::with_margin(survey.main_metric(), cell, reference),
            ))
        };
        let contests = steps.iter().filter_map(contest).collect();
        Line { survey, other_steps: others, contests }
    };
    survey.combinations(1).into_iter().map(line).collect()
}

/// Describes the results at the points of several lines.
fn tally(lines: &[&Line<'_, '_>]) -> String {
    let contests: Vec<&TransportComparison<'_>> =
        lines.iter().flat_map(|line| &line.contests).map(|(_, contest)| contest).collect();
    let outcomes: Vec<Outcome> = contests.iter().map(|contest| contest.outcome()).collect();
    let count = |wanted: Outcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    let [better, worse] = lines[0].survey.main_metric().info().comparatives;
    let [name, other] = lines[0].names();
    let alone = |wanted: Outcome, who: &str| {
        let is_alone =
            |contest: &&&TransportComparison<'_>| contest.compares_load_only() && contest.outcome() == wanted;
        match contests.iter().filter(is_alone).count() {
            0 => String::new(),
            n => format!(" (only {who} carries the load in {n})"),
        }
    };
    let mut text = format!(
        "{name} is {better} than {other} in {} of {} conditions{}, {worse} in {}{}, {} (within {} %) in {}, undecided in {}",
        count(Outcome::Better),
        outcomes.len(),
        alone(Outcome::Better, name),
        count(Outcome::Worse),
        alone(Outcome::Worse, other),
        lines[0].survey.main_metric().info().equal,
        number(100.0 * NEGLIGIBLE),
        count(Outcome::Same),
        count(Outcome::Undecided),
    );
    let unknown = count(Outcome::Unknown);
    if unknown > 0 {
        text += &format!("; in {unknown} neither transport carries the load, or there is no steady state");
    }
    let lossy = contests.into_iter().filter(counts_losses);
    if let Some(losses) = lossy.max_by(compare_losses).and_then(TransportComparison::describe_losses) {
        text += &format!("; {losses} in the condition in which they differ most");
    }
    text + "."
}

/// Returns whether lost messages are described with the outcome: only if messages were lost, and the transports can be
/// compared.
fn counts_losses(contest: &&TransportComparison<'_>) -> bool {
    contest.outcome() != Outcome::Unknown && contest.describe_losses().is_some()
}

fn compare_losses(a: &&TransportComparison<'_>, b: &&TransportComparison<'_>) -> std::cmp::Ordering {
    a.loss_difference().total_cmp(&b.loss_difference())
}

impl Line<'_, '_> {
    fn names(&self) -> [&str; 2] {
        [1, 0].map(|transport| self.survey.transports[transport])
    }

    /// Returns the horizontal axis.
    fn axis(&self) -> Option<&Axis> {
        self.survey.axes.first()
    }

    fn sentence(&self) -> String {
        let [name, other] = self.names();
        let [better, worse] = self.survey.main_metric().info().comparatives;
        let outcomes: Vec<Outcome> = self.contests.iter().map(|(_, contest)| contest.outcome()).collect();
        let word = |outcome: Outcome| if outcome == Outcome::Better { better } else { worse };
        let ranges = ranges(&outcomes);
        let mut text = match ranges.as_slice() {
            [] => self.describe_no_result(&outcomes),
            [(_, first, _)] if self.axis().is_none() && self.contests[*first].1.compares_load_only() => {
                self.contests[*first].1.describe_difference()
            }
            [(outcome, first, last), rest @ ..] if ranges.len() <= MAX_RANGES => {
                let mut text = format!(
                    "{name} is {} than {other}{}",
                    word(*outcome),
                    self.describe_range(*first, *last)
                );
                for (outcome, first, last) in rest {
                    text += &format!(", {}{}", word(*outcome), self.describe_range(*first, *last));
                }
                let crosses = rest.iter().any(|(other, ..)| other != outcome);
                if crosses && self.is_ordered() {
                    text += "; `hol advise` finds the crossover";
                }
                text + &self.describe_undecided(&outcomes)
            }
            _ => {
                let of = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
                format!(
                    "{name} is {better} than {other} at {} of {} settings, {worse} at {}{}",
                    of(Outcome::Better),
                    outcomes.len(),
                    of(Outcome::Worse),
                    self.describe_undecided(&outcomes)
                )
            }
        };
        let unknown: Vec<usize> = (0..outcomes.len()).filter(|i| outcomes[*i] == Outcome::Unknown).collect();
        if let (Some(first), true) = (unknown.first(), unknown.len() < outcomes.len()) {
            let more =
                if unknown.len() > 1 { format!(" and {} more", unknown.len() - 1) } else { String::new() };
            text += &format!(
                "; at {}{more}: {}",
                self.describe_step(*first),
                self.contests[*first].1.why_no_comparison()
            );
        }
        text += &self.describe_tails();
        if let Some(extent) = self.contests.first().and_then(|(_, contest)| contest.describe_transfer_size())
        {
            text += &format!("; of {extent}");
        }
        let lossy = self.contests.iter().filter(|(_, contest)| counts_losses(&contest));
        let Some((step, worst)) = lossy.max_by(|a, b| compare_losses(&&a.1, &&b.1)) else { return text };
        let losses = worst.describe_losses().unwrap_or_default();
        let place = self.axis().map_or(String::new(), |axis| format!(" at {}", axis.describe_step(*step)));
        format!("{text}; {losses}{place}")
    }

    /// Describes at how many points the 99th percentile contradicts the mean.
    fn describe_tails(&self) -> String {
        if self.axis().is_none() {
            let tail = self.contests.first().and_then(|(_, contest)| contest.describe_tail());
            return tail.map_or(String::new(), |tail| format!(", {tail}"));
        }
        let is_sure =
            |contest: &TransportComparison<'_>| matches!(contest.outcome(), Outcome::Better | Outcome::Worse);
        let contradicted = self
            .contests
            .iter()
            .filter(|(_, contest)| is_sure(contest) && contest.describe_tail().is_some())
            .count();
        match contradicted {
            0 => String::new(),
            count => {
                format!(
                    "; the 99th percentile contradicts the mean at {count} of {} settings",
                    self.contests.len()
                )
            }
        }
    }

    /// Describes at which points the repetitions do not decide, or show no difference.
    fn describe_undecided(&self, outcomes: &[Outcome]) -> String {
        let at = |wanted: Outcome| {
            let at: Vec<String> = (0..outcomes.len())
                .filter(|i| outcomes[*i] == wanted)
                .map(|i| self.describe_step(i))
                .collect();
            if at.len() > 3 { format!("{} of {} settings", at.len(), outcomes.len()) } else { at.join(", ") }
        };
        let [same, open] = [Outcome::Same, Outcome::Undecided].map(at);
        let equal = self.survey.main_metric().info().equal;
        let same = if same.is_empty() { same } else { format!("; {equal} at {same}") };
        if open.is_empty() { same } else { format!("{same}; no clear difference at {open}") }
    }

    fn describe_no_result(&self, outcomes: &[Outcome]) -> String {
        let [name, other] = self.names();
        let all = |wanted| outcomes.iter().all(|outcome| *outcome == wanted);
        if all(Outcome::Unknown) {
            let first = self.contests.first().map(|(_, contest)| contest);
            if let Some(text) = first.and_then(TransportComparison::describe_unconfirmed_recovery) {
                return text;
            }
            let why = first.map_or(String::new(), TransportComparison::why_no_comparison);
            return format!("{name} cannot be compared with {other}: {why}");
        }
        if all(Outcome::Same) {
            return format!(
                "{name} is {} as {other} (within {} %)",
                self.survey.main_metric().info().equal,
                number(100.0 * NEGLIGIBLE)
            );
        }
        match (self.axis(), &self.contests[..]) {
            (None, [(_, contest)]) => {
                format!(
                    "No clear difference between {name} and {other}: {}",
                    contest.describe_unclear_difference("")
                )
            }
            _ if self.contests.iter().all(|(_, contest)| contest.repetitions() < 2) => {
                format!(
                    "{name} and {other} were compared in one repetition per point; run more repetitions for a confidence interval"
                )
            }
            _ => format!("No clear difference between {name} and {other} anywhere"),
        }
    }

    /// Returns whether the steps have an order, so that "from … on" has a meaning.
    fn is_ordered(&self) -> bool {
        self.axis().is_some_and(|axis| axis.numbers.is_some())
    }

    fn describe_step(&self, index: usize) -> String {
        self.axis().map_or(String::new(), |axis| axis.describe_step(self.contests[index].0))
    }

    /// Describes a range in which the challenger has the same outcome from `first` to `last`, and the difference at
    /// both ends; without an order, the smallest and the largest difference.
    fn describe_range(&self, first: usize, last: usize) -> String {
        let by = |index: usize| self.contests[index].1.describe_difference();
        let end = self.contests.len() - 1;
        if self.axis().is_none() {
            return format!(", {}", by(first));
        }
        if first == last {
            return format!(" at {} ({})", self.describe_step(first), by(first));
        }
        let place = match (first == 0, last == end) {
            (true, true) => format!(" at every {}", self.axis().map_or(String::new(), Axis::name)),
            _ if !self.is_ordered() => {
                let steps: Vec<String> = (first..=last).map(|index| self.describe_step(index)).collect();
                format!(" at {}", steps.join(", "))
            }
            (false, true) => format!(" from {} on", self.describe_step(first)),
            (true, false) => format!(" up to {}", self.describe_step(last)),
            (false, false) => format!(" from {} to {}", self.describe_step(first), self.describe_step(last)),
        };
        let [one, other] = if self.is_ordered() { [first, last] } else { self.extremes(first, last) };
        match [by(one), by(other)] {
            [by, same] if by == same => format!("{place} ({by})"),
            [by, more] => {
                format!(
                    "{place} ({by} at {}, {more} at {})",
                    self.describe_step(one),
                    self.describe_step(other)
                )
            }
        }
    }

    /// Returns the steps from `first` to `last` with the smallest and the largest difference.
    fn extremes(&self, first: usize, last: usize) -> [usize; 2] {
        // A contest without a size names the only transport that carries the load.
        let size = |index: usize| self.contests[index].1.size().unwrap_or(f64::INFINITY);
        let mut steps: Vec<usize> = (first..=last).collect();
        steps.sort_by(|a, b| size(*a).total_cmp(&size(*b)));
        [steps[0], steps[steps.len() - 1]]
    }
}

/// Returns the ranges in which each point is decided with the same outcome, in order: outcome, first, last.
fn ranges(outcomes: &[Outcome]) -> Vec<(Outcome, usize, usize)> {
    let is_sure = |outcome: Outcome| matches!(outcome, Outcome::Better | Outcome::Worse);
    let mut ranges: Vec<(Outcome, usize, usize)> = Vec::new();
    for (index, outcome) in outcomes.iter().enumerate().filter(|(_, outcome)| is_sure(**outcome)) {
        match ranges.last_mut() {
            Some((known, _, last)) if known == outcome && *last + 1 == index => *last = index,
            _ => ranges.push((*outcome, index, index)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Cell;
    use crate::testing::{cell, dataset, swept};

    const NOISE: [f64; 4] = [-0.2, 0.1, 0.2, -0.1];

    fn means(mean: f64) -> [f64; 4] {
        NOISE.map(|noise| mean + noise)
    }

    /// Returns the headline over losses, each with the means of SCTP-8 and of TCP.
    fn over_loss(rows: &[(f64, f64, f64)]) -> Headline {
        let points = rows.iter().flat_map(|&(loss, sctp, tcp)| {
            let mut other = means(tcp);
            other.rotate_left(1);
            [cell("TCP", loss, 100.0, &other), cell("SCTP-8", loss, 100.0, &means(sctp))]
        });
        let data = dataset(points.collect());
        Headline::of(&swept(&data))
    }

    #[test]
    fn line_is_one_sentence_with_the_difference_at_both_ends() {
        let headline = over_loss(&[(0.5, 21.0, 25.0), (1.0, 22.0, 30.0), (5.0, 30.0, 60.0)]);
        assert_eq!(headline.lines, Vec::<String>::new());
        let [text] = &headline.main_sentences[..] else { panic!("{headline:?}") };
        assert!(text.starts_with("SCTP-8 is faster than TCP at every loss (by 16 % (95 % CI "), "{text}");
        assert!(text.contains(") at loss 0.5%, by 50.0 % (") && text.ends_with(") at loss 5%)."), "{text}");
    }

    #[test]
    fn sentence_names_the_start_and_the_crossover() {
        let from = over_loss(&[(0.5, 25.0, 25.0), (1.0, 25.0, 25.0), (2.0, 26.0, 30.0), (5.0, 30.0, 60.0)]);
        assert!(
            from.main_sentences[0].starts_with("SCTP-8 is faster than TCP from loss 2% on (by 13"),
            "{from:?}"
        );
        assert!(from.main_sentences[0].ends_with("; no clear difference at loss 0.5%, loss 1%."), "{from:?}");
        let cross = over_loss(&[(1.0, 40.0, 30.0), (10.0, 40.0, 50.0)]);
        assert!(
            cross.main_sentences[0].starts_with("SCTP-8 is slower than TCP at loss 1% (by 33"),
            "{cross:?}"
        );
        assert!(cross.main_sentences[0].contains(", faster at loss 10% (by 20"), "{cross:?}");
        assert!(cross.main_sentences[0].ends_with("`hol advise` finds the crossover."), "{cross:?}");
    }

    /// The values of such an axis have no order, so its first and last value are not the ends of anything.
    #[test]
    fn axis_of_names_shows_the_smallest_and_the_largest_difference() {
        let cells = [("droptail", 20.0, 40.0), ("codel", 200.0, 250.0), ("pie", 20.0, 30.0)]
            .into_iter()
            .flat_map(|(discipline, tcp, sctp)| {
                [("TCP", tcp), ("SCTP-8", sctp)].map(|(name, ms): (_, f64)| {
                    let mut cell = cell(name, 1.0, 100.0, &[ms, ms + 0.1, ms + 0.2, ms]);
                    cell.conditions.axes = vec![("network.discipline".to_owned(), discipline.to_owned())];
                    cell
                })
            });
        let data = dataset(cells.collect());
        let headline = Headline::of(&swept(&data));
        let text = &headline.main_sentences[0];
        assert!(text.starts_with("SCTP-8 is slower than TCP at every discipline (by 25.0 %"), "{text}");
        assert!(
            // In milliseconds codel has the largest difference.
            text.contains("at discipline codel, by 99.6") && text.contains("at discipline droptail)"),
            "{text}"
        );
    }

    #[test]
    fn negligible_difference_counts_as_equal() {
        let same = over_loss(&[(0.5, 25.00, 25.0), (1.0, 25.0, 25.0)]);
        assert!(
            same.main_sentences[0].contains("No clear difference")
                || same.main_sentences[0].contains("as fast as"),
            "{same:?}"
        );
        let data =
            dataset(vec![cell("TCP", 0.0, 100.0, &[20.0; 4]), cell("SCTP-8", 0.0, 100.0, &[20.002; 4])]);
        assert_eq!(Headline::of(&swept(&data)).main_sentences, ["SCTP-8 is as fast as TCP (within 0.5 %)."]);
    }

    #[test]
    fn several_lines_are_counted_and_listed() {
        let mut points = Vec::new();
        for (delay, tcp) in [("10ms", 30.0), ("20ms", 20.0)] {
            for (label, mean) in [("TCP", tcp), ("SCTP-8", 25.0)] {
                for loss in [1.0, 2.0] {
                    let mut point = cell(label, loss, 100.0, &means(mean));
                    if label == "TCP" {
                        point.runs.rotate_left(1);
                    }
                    point.conditions.axes.push(("network.delay".to_owned(), delay.to_owned()));
                    points.push(point);
                }
            }
        }
        let data = dataset(points);
        let headline = Headline::of(&swept(&data));
        assert_eq!(
            headline.main_sentences,
            [
                "SCTP-8 is faster than TCP in 2 of 4 conditions, slower in 2, as fast (within 0.5 %) in 0, undecided in 0."
            ]
        );
        assert!(
            headline.lines[0].starts_with("delay 10ms: SCTP-8 is faster than TCP at every loss"),
            "{headline:?}"
        );
        assert!(
            headline.lines[1].starts_with("delay 20ms: SCTP-8 is slower than TCP at every loss"),
            "{headline:?}"
        );
    }

    #[test]
    fn point_that_did_not_carry_the_load_is_named() {
        let mut points: Vec<Cell> = [1.0, 2.0].map(|loss| cell("TCP", loss, 100.0, &means(30.0))).into();
        points.extend([1.0, 2.0].map(|loss| cell("SCTP-8", loss, 100.0, &means(25.0))));
        (points[3].stop_reason, points[3].ended_early) =
            (Some("stalled".to_owned()), vec![true; points[3].runs.len()]);
        let data = dataset(points);
        let text = &Headline::of(&swept(&data)).main_sentences[0];
        assert!(
            text.contains("slower at loss 2% (only TCP carries the load: 4 of 4 runs of SCTP-8 ended early"),
            "{text}"
        );
    }

    /// A range was once stated although points in it were undecided, and `hol advise` found the opposite at these points.
    #[test]
    fn range_is_stated_only_if_every_point_is_decided() {
        use Outcome::{Better, Same, Undecided, Unknown, Worse};
        assert_eq!(ranges(&[Worse, Undecided, Worse, Worse]), [(Worse, 0, 0), (Worse, 2, 3)]);
        assert_eq!(ranges(&[Better, Same, Better]), [(Better, 0, 0), (Better, 2, 2)]);
        assert_eq!(ranges(&[Better, Better, Unknown]), [(Better, 0, 1)]);
        let open = over_loss(&[(0.5, 30.0, 25.0), (1.0, 25.0, 25.0), (2.0, 30.0, 25.0)]);
        let text = &open.main_sentences[0];
        assert!(text.starts_with("SCTP-8 is slower than TCP at loss 0.5% (by"), "{text}");
        assert!(
            text.contains(", slower at loss 2% (by") && text.contains("; no clear difference at loss 1%"),
            "{text}"
        );
    }

    /// SCTP's option changes only SCTP, so QUIC and TCP are compared once.
    #[test]
    fn option_of_one_transport_is_no_condition_of_the_others() {
        let mut points = vec![cell("TCP", 0.0, 100.0, &means(30.0)), cell("QUIC", 0.0, 100.0, &means(25.0))];
        points.extend([20.0, 40.0].map(|ms| cell("SCTP", 0.0, 100.0, &means(ms))));
        points.iter_mut().for_each(|point| point.conditions.axes.clear());
        points[0].runs.rotate_left(1);
        for (point, rto) in points[2..].iter_mut().zip(["100ms", "1s"]) {
            point.conditions.axes = vec![("sctp.rto_min".to_owned(), rto.to_owned())];
        }
        let data = dataset(points);
        let headline = Headline::of(&swept(&data));
        let [quic, sctp] = &headline.main_sentences[..] else { panic!("{headline:?}") };
        assert!(quic.starts_with("QUIC is faster than TCP, by ") && !quic.contains("rto_min"), "{quic}");
        assert!(sctp.starts_with("SCTP is faster than TCP at sctp.rto_min 100ms (by "), "{sctp}");
        assert!(sctp.contains(", slower at sctp.rto_min 1s (by "), "{sctp}");
        assert_eq!(headline.lines, Vec::<String>::new());
        let survey = swept(&data);
        let [tcp, other] = [0, 1].map(|step| survey.at(0, &[step]).unwrap());
        assert!(std::ptr::eq(tcp, other), "TCP's curve is a level line");
        assert_eq!(survey.cells().count(), 4);
    }

    #[test]
    fn single_transport_has_no_headline() {
        let data = dataset(vec![cell("TCP", 1.0, 100.0, &[20.0; 4])]);
        assert_eq!(Headline::of(&swept(&data)), Headline::default());
    }
}
