//! Two transports under the same conditions: which is better, by how much, and at what loss of messages.

use hol_measure::{CONFIDENCE, Comparison, Interval};

use crate::claims::compare;
use crate::data::Cell;
use crate::plot::number;
use hol_lab::Metric;

/// A difference that no user notices, as a share.
pub const NO_MATTER: f64 = 0.005;

const ALPHA: f64 = 1.0 - CONFIDENCE;
/// Fewer pairs have no ranks that are less likely than one in twenty.
const FEWEST_RANKED: u64 = 6;

/// What a contest says of the challenger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is surely better.
    Better,
    /// It is surely worse.
    Worse,
    /// It is as good, for sure.
    Same,
    /// The repetitions do not tell.
    Undecided,
    /// One of the two has no honest value.
    Unknown,
}

/// A challenger against a yardstick.
#[derive(Debug, Clone)]
pub struct Contest<'d> {
    challenger: &'d Cell,
    yardstick: &'d Cell,
    metric: Metric,
    comparison: Option<Comparison>,
    /// What the comparison's p values are worth in their family of tests.
    p: f64,
    p_equivalent: f64,
}

impl<'d> Contest<'d> {
    /// Compares the repetitions that met the same losses; only what cannot be told apart is the same.
    pub fn new(metric: Metric, challenger: &'d Cell, yardstick: &'d Cell) -> Self {
        Self::within(metric.resolution(), metric, challenger, yardstick)
    }

    /// The same where a difference of less than [`NO_MATTER`] of the yardstick counts as none.
    pub fn that_matters(metric: Metric, challenger: &'d Cell, yardstick: &'d Cell) -> Self {
        let margin = yardstick.mean_of(metric).map_or(0.0, |mean| NO_MATTER * mean.mean.abs());
        Self::within(margin.max(metric.resolution()), metric, challenger, yardstick)
    }

    fn within(margin: f64, metric: Metric, challenger: &'d Cell, yardstick: &'d Cell) -> Self {
        let comparison = compare(metric, challenger, yardstick, margin);
        let (p, p_equivalent) =
            comparison.map_or((1.0, 1.0), |test| (test.p.max(test.p_beyond), test.p_equivalent));
        Self { challenger, yardstick, metric, comparison, p, p_equivalent }
    }

    /// Its own p value; `None` where there is no comparison.
    pub fn p(&self) -> Option<f64> {
        self.comparison.map(|test| test.p.max(test.p_beyond))
    }

    /// Whether there are enough repetitions for a test of means although few of them decide: 25 times the square of their
    /// skewness (Cochran 1977, section 2.15), which is 25 repetitions in which something rare has happened.
    pub fn is_enough(&self) -> bool {
        let differences = self.differences();
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n;
        let moment = |power: i32| differences.iter().map(|d| (d - mean).powi(power)).sum::<f64>() / n;
        let (variance, third) = (moment(2), moment(3));
        // Without any variance there is no skewness.
        variance <= self.metric.resolution().powi(2) || n >= 25.0 * third * third / variance.powi(3)
    }

    /// All repetitions of both were the same although losses are left to chance: too little has happened.
    pub fn saw_nothing(&self) -> bool {
        let is_random = |cell: &Cell| cell.conditions.loss > 0.0 && cell.conditions.loss < 100.0;
        let never_varied = |cell: &Cell| {
            let values: Vec<f64> = cell.of_runs(self.metric).into_iter().flatten().collect();
            values.windows(2).all(|pair| (pair[0] - pair[1]).abs() <= self.metric.resolution())
        };
        [self.challenger, self.yardstick].into_iter().all(|cell| is_random(cell) && never_varied(cell))
    }

    fn differences(&self) -> Vec<f64> {
        let pairs = self.challenger.of_runs(self.metric).into_iter().zip(self.yardstick.of_runs(self.metric));
        pairs.filter_map(|(a, b)| Some(a? - b?)).collect()
    }

    /// As one of a family of tests, in which its p value is worth `p` (Holm 1979).
    pub fn adjusted(self, p: f64) -> Self {
        Self { p, ..self }
    }

    /// As one of so many tests that shall hold together (Bonferroni).
    pub fn among(self, tests: usize) -> Self {
        let factor = tests as f64;
        Self { p: (self.p * factor).min(1.0), p_equivalent: (self.p_equivalent * factor).min(1.0), ..self }
    }

    /// What it says.
    pub fn outcome(&self) -> Outcome {
        match &self.comparison {
            None => Outcome::Unknown,
            Some(_) if self.saw_nothing() => Outcome::Undecided,
            Some(_) if self.p_equivalent < ALPHA => Outcome::Same,
            Some(_) if self.p >= ALPHA => Outcome::Undecided,
            Some(_) if self.gain() > 0.0 => Outcome::Better,
            Some(_) => Outcome::Worse,
        }
    }

    /// How much better the challenger is, in the metric's unit; not a number where that is not known.
    pub fn gain(&self) -> f64 {
        self.comparison.map_or(f64::NAN, |comparison| self.metric.gain(comparison.difference.mean))
    }

    /// The challenger's mean less the yardstick's, in the metric's unit.
    pub fn difference(&self) -> f64 {
        self.comparison.map_or(f64::NAN, |comparison| comparison.difference.mean)
    }

    /// Pairs of repetitions.
    pub fn repetitions(&self) -> u64 {
        self.comparison.map_or(0, |comparison| comparison.difference.n)
    }

    /// The difference's size: `3.1 ± 0.4 ms (12 %)`.
    pub fn by(&self) -> String {
        let Some(comparison) = &self.comparison else { return "an unknown amount".to_owned() };
        let size = Interval { mean: comparison.difference.mean.abs(), ..comparison.difference };
        let share = self.yardstick.mean_of(self.metric).map(|mean| 100.0 * size.mean / mean.mean);
        let share = share.filter(|share| share.is_finite() && self.metric != Metric::Delivered);
        let share = share.map_or(String::new(), |share| format!(" ({} %)", number(two_digits(share))));
        format!("{size} {}{share}", self.metric.info().unit)
    }

    /// Whether the signed ranks of the pairs, a second way to the verdict, come to the same; nothing where so few pairs never do.
    fn ranks_beside(&self) -> String {
        let sure = matches!(self.outcome(), Outcome::Better | Outcome::Worse);
        let [pairs, others] = [self.challenger, self.yardstick].map(|cell| cell.of_runs(self.metric).len());
        let pairs = pairs.min(others);
        match self.comparison.and_then(|comparison| comparison.ranks) {
            Some(ranks) if sure && self.repetitions() < pairs as u64 => {
                let (without, p) = (pairs as u64 - self.repetitions(), probability(ranks.p_of_signs()));
                format!("; {without} of {pairs} that did not end count as the worst, by signs {p}")
            }
            Some(ranks) if sure && ranks.lower + ranks.higher >= FEWEST_RANKED => {
                let word = if ranks.p < ALPHA { "signed ranks agree" } else { "signed ranks do not tell" };
                format!("; {word}, {}", probability(ranks.p))
            }
            _ => String::new(),
        }
    }

    /// What the ranks say where the means do not tell: rare runs decide a mean, and count as one here.
    fn mostly(&self) -> String {
        let Some(ranks) =
            self.comparison.and_then(|comparison| comparison.ranks).filter(|ranks| ranks.p < ALPHA)
        else {
            return String::new();
        };
        let (lower, higher) = (ranks.lower, ranks.higher);
        let gains = self.metric.gain(higher as f64 - lower as f64) > 0.0;
        let [better, worse] = self.metric.info().comparatives;
        let (word, of) = (if gains { better } else { worse }, lower.max(higher));
        let name = &self.challenger.transport;
        format!(
            "; mostly {name} is {word}, in {of} of {} (signed ranks, {})",
            lower + higher,
            probability(ranks.p)
        )
    }

    /// How much the shares of messages that never arrived differ.
    pub fn lost(&self) -> f64 {
        let share = |cell: &Cell| cell.lost() as f64 / cell.offered().max(1) as f64;
        (share(self.challenger) - share(self.yardstick)).abs()
    }

    /// What has to be known beside the times: messages that never arrived are in no mean.
    pub fn losses(&self) -> Option<String> {
        let lost = [self.challenger, self.yardstick].map(Cell::lost);
        if lost == [0, 0] || matches!(self.metric, Metric::Delivered | Metric::Throughput) {
            return None;
        }
        let one = |cell: &Cell| match cell.lost() {
            0 => format!("{} none", cell.transport),
            n => {
                let (offered, share) = (cell.offered(), 100.0 * n as f64 / cell.offered() as f64);
                let (n, offered) = (number(n as f64), number(offered as f64));
                format!("{} lost {n} of {offered} ({} %)", cell.transport, number(two_digits(share)))
            }
        };
        Some(format!("for the messages that arrived: {}, {}", one(self.challenger), one(self.yardstick)))
    }

    /// Why there is no comparison.
    fn why_not(&self) -> String {
        let cells = [self.challenger, self.yardstick];
        let what = if let Some(cell) = cells.iter().find(|cell| cell.latency.completed() == 0) {
            format!("nothing completed over {}", cell.transport)
        } else if let Some(cell) = cells.iter().find(|cell| !cell.steady) {
            format!("{} has no steady state: its mean depends on the length of the runs", cell.transport)
        } else if let Some((cell, why)) = cells.iter().find_map(|cell| Some((cell, cell.stopped.as_ref()?))) {
            let (lost, offered) = (number(cell.lost() as f64), number(cell.offered() as f64));
            format!(
                "{} did not carry the load ({lost} of {offered} messages did not arrive; {why}) and the missing ones \
                 are the slowest",
                cell.transport
            )
        } else {
            let [a, b] = cells.map(|cell| &cell.transport);
            format!("{a} and {b} completed nothing in the same repetition")
        };
        what + ", so there is no comparison"
    }
}

/// The contest in a sentence.
pub fn verdict(metric: Metric, challenger: &Cell, yardstick: &Cell) -> String {
    let contest = Contest::new(metric, challenger, yardstick);
    let Some(comparison) = &contest.comparison else { return contest.why_not() };
    let (name, other, n) = (&challenger.transport, &yardstick.transport, comparison.difference.n);
    let [better, worse] = metric.info().comparatives;
    let basis = format!("(95 %, {n} paired repetitions{})", contest.ranks_beside());
    let sentence = match contest.outcome() {
        _ if n < 2 => {
            let word = if contest.gain() > 0.0 { better } else { worse };
            let by = contest.by();
            format!("{name} is {by} {word} than {other} in one repetition; more tell how sure that is")
        }
        Outcome::Better => format!("{name} is {} {better} than {other} {basis}", contest.by()),
        Outcome::Worse => format!("{name} is {} {worse} than {other} {basis}", contest.by()),
        Outcome::Same => format!("{name} is exactly {} as {other} {basis}", metric.info().equal),
        Outcome::Undecided if contest.saw_nothing() => format!(
            "{name} and {other} differ by {} in each of {n} repetitions: too few losses to tell",
            contest.by()
        ),
        Outcome::Undecided | Outcome::Unknown => {
            let (difference, unit) = (comparison.difference, metric.info().unit);
            format!(
                "{name} and {other} do not differ for sure: {difference} {unit} {basis}{}",
                contest.mostly()
            )
        }
    };
    contest.losses().map_or(sentence.clone(), |losses| format!("{sentence}, {losses}"))
}

fn probability(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// A share in percent with two digits that count.
fn two_digits(share: f64) -> f64 {
    if share <= 0.0 || !share.is_finite() {
        return share;
    }
    let step = 10f64.powf(share.log10().floor() - 1.0).min(1.0);
    (share / step).round() * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell;

    fn says(challenger: &Cell, yardstick: &Cell) -> String {
        verdict(Metric::ResponseTime, challenger, yardstick)
    }

    #[test]
    fn a_verdict_says_how_much_and_how_sure() {
        let (tcp, sctp) =
            (cell("TCP", 1.0, 100.0, &[40.0, 40.2, 40.1]), cell("SCTP-8", 1.0, 100.0, &[30.0, 30.1, 30.1]));
        assert_eq!(
            says(&sctp, &tcp),
            "SCTP-8 is 10.03 ± 0.14 ms (25 %) faster than TCP (95 %, 3 paired repetitions)"
        );
        assert!(says(&tcp, &sctp).contains("TCP is 10.03 ± 0.14 ms (33 %) slower than SCTP-8"));
        assert!(says(&tcp, &tcp).contains("exactly as fast as"));
        let once = cell("TCP", 1.0, 100.0, &[40.0]);
        assert!(says(&once, &cell("SCTP-8", 1.0, 100.0, &[30.0])).contains("in one repetition"));
    }

    #[test]
    fn where_a_rare_run_hides_the_mean_the_ranks_tell() {
        let tcp = cell("TCP", 1.0, 100.0, &[22.0; 10]);
        let mut times = [21.0, 21.1, 21.2, 21.0, 21.1, 21.2, 21.3, 21.05, 21.15, 35.9];
        let text = says(&cell("SCTP-1024", 1.0, 100.0, &times), &tcp);
        assert!(text.contains("do not differ for sure"), "{text}");
        times[9] = 22.1;
        let text = says(&cell("SCTP-1024", 1.0, 100.0, &times), &tcp);
        assert!(
            text.contains("faster than TCP (95 %, 10 paired repetitions; signed ranks agree, p = 0.004)"),
            "{text}"
        );
        let mut spread = [21.5; 20];
        spread[7] = 60.0;
        let spread = cell("SCTP-1024", 1.0, 100.0, &spread);
        let text = says(&spread, &cell("TCP", 1.0, 100.0, &[22.0; 20]));
        assert!(
            text.contains("; mostly SCTP-1024 is faster, in 19 of 20 (signed ranks, p < 0.001)"),
            "{text}"
        );
    }

    #[test]
    fn one_run_of_ten_that_ends_early_is_the_worst_of_ten_and_not_the_whole_point() {
        let tcp = cell("TCP", 1.0, 100.0, &[25.0; 10]);
        let times = [21.0, 21.1, 21.2, 21.0, 21.1, 21.2, 21.3, 21.05, 21.15, 21.0];
        let mut sctp = cell("SCTP-8", 1.0, 100.0, &times);
        (sctp.stopped, sctp.early) = (Some("behind schedule".to_owned()), vec![false; 10]);
        sctp.early[9] = true;
        let text = says(&sctp, &tcp);
        assert!(text.starts_with("SCTP-8 is 3.878") && text.contains("; 1 of 10 that did not end"), "{text}");
        sctp.early = (0..10).map(|at| at < 4).collect();
        assert!(says(&sctp, &tcp).contains("do not differ for sure"), "{}", says(&sctp, &tcp));
        sctp.early = vec![true; 10];
        assert!(says(&sctp, &tcp).contains("did not carry the load"));
    }

    #[test]
    fn a_verdict_counts_what_never_arrived() {
        let (tcp, mut udp) = (cell("TCP", 1.0, 100.0, &[40.0, 40.2]), cell("UDP", 1.0, 100.0, &[30.0, 30.2]));
        for run in &mut udp.runs {
            run.offered = 4;
        }
        let text = says(&udp, &tcp);
        assert!(
            text.ends_with(", for the messages that arrived: UDP lost 6 of 8 (75 %), TCP none"),
            "{text}"
        );
        (udp.stopped, udp.early) = (Some("stalled".to_owned()), vec![true; 2]);
        let text = says(&udp, &tcp);
        assert!(
            text.starts_with("UDP did not carry the load (6 of 8") && text.ends_with("no comparison"),
            "{text}"
        );
    }

    #[test]
    fn a_family_of_tests_raises_the_bar() {
        let (tcp, sctp) =
            (cell("TCP", 1.0, 100.0, &[40.0, 40.2, 40.1]), cell("SCTP-8", 1.0, 100.0, &[30.0, 30.1, 30.1]));
        let contest = Contest::new(Metric::ResponseTime, &sctp, &tcp);
        assert_eq!(contest.outcome(), Outcome::Better);
        assert_eq!(contest.adjusted(0.06).outcome(), Outcome::Undecided);
    }

    #[test]
    fn shares_have_two_digits() {
        assert_eq!(
            [0.0, 0.0123, 1.26, 12.6, 126.4].map(two_digits).map(number),
            ["0", "0.012", "1.3", "13", "126"]
        );
    }
}
