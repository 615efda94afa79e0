//! Describes the comparison of two transports in sentences.

use hol_lab::Metric;
use hol_measure::{CONFIDENCE, ConfidenceInterval, TimeoutCounts, Verdict as ComparedPoint};

use super::carrier::{Carrier, describe_missing_recovery, describe_overload};
use super::quantiles::{QuantileComparison, compare_quantile, compare_tails};
use super::size::{round_to_digits, round_to_two_digits};
use super::transport_comparison::{ALPHA, NEGLIGIBLE, Outcome, TransportComparison, lost_share};
use crate::data::Cell;
use crate::plot::number;

/// The largest share of lost messages with which a transport carries its load.
const MAX_LOST: f64 = 0.01;

impl TransportComparison<'_> {
    /// Describes the size of the difference with its confidence interval: `by 12 % (95 % CI 11 to 13)`. If
    /// only one transport carries the load, names it instead.
    pub fn describe_difference(&self) -> String {
        if let (None, Some(carrier)) = (&self.comparison, self.carrier) {
            return self.describe_carrier(carrier);
        }
        let Some(size) = self.difference_size() else { return "by an unknown amount".to_owned() };
        let (by, ends) = (format!("by {} {}", size.format_value(), size.unit), size.format_interval());
        let mean = self.describe_ratio_of_means().map_or(String::new(), |mean| format!("; {mean}"));
        match self.is_exact() {
            true => by,
            false if self.is_unsteady => format!("{by} in runs of this length (95 % CI {ends})"),
            false if self.repetitions() < 2 => by,
            false => format!("{by}{} (95 % CI {ends}{mean})", self.typical()),
        }
    }

    /// Describes [`Self::ratio_of_means`]: `its mean over all runs is 12 % higher`.
    fn describe_ratio_of_means(&self) -> Option<String> {
        let share = self.ratio_of_means()?;
        let word = if share > 0.0 { "higher" } else { "lower" };
        let [pairs, others] =
            [self.challenger, self.reference].map(|cell| cell.values_by_run(self.metric).len());
        let runs =
            if self.repetitions() < pairs.min(others) as u64 { "the finished pairs" } else { "all runs" };
        Some(format!("its mean over {runs} is {} % {word}", number(round_to_two_digits(share.abs()))))
    }

    /// Returns ` in a typical run` if the stated percentage differs from the ratio of the means; otherwise an empty
    /// text.
    fn typical(&self) -> &'static str {
        if self.ratio_of_means().is_some() { " in a typical run" } else { "" }
    }

    /// Describes a difference that may have either sign: `the mean response time of sctp is 3 % lower (95 % CI 1 %
    /// higher to 7 % lower)`. The text `runs` is added after the interval.
    pub fn describe_unclear_difference(&self, runs: &str) -> String {
        let Some(size) = self.difference_size() else { return self.describe_difference() };
        let is_higher = self.comparison.is_some_and(|comparison| comparison.difference.mean > 0.0);
        let [word, opposite] = if is_higher { ["higher", "lower"] } else { ["lower", "higher"] };
        let what = format!("the {} of {}", self.metric.info().title, self.challenger.transport);
        let by = format!("{} {} {word}", size.format_value(), size.unit);
        if self.repetitions() < 2 {
            return format!(
                "{what} is {by} in one repetition; run more repetitions for a confidence interval"
            );
        }
        let joint =
            if self.ratio_of_means().is_some_and(|share| (share > 0.0) != is_higher) { "but" } else { "and" };
        let mean = self.describe_ratio_of_means().map_or(String::new(), |mean| format!(", {joint} {mean}"));
        let ends = size.format_signed_interval(word, opposite);
        format!("{what} is {by}{} (95 % CI {ends}{runs}){mean}", self.typical())
    }

    /// Describes the difference of the means: `10.03 ms less`; for metrics other than times as a fraction.
    fn describe_in_units(&self) -> String {
        let difference = self.difference();
        let more = if difference > 0.0 { "more" } else { "less" };
        let value = number(round_to_digits(difference.abs(), 3));
        let unit = self.metric.info().unit;
        if self.is_ratio {
            return format!(": {value} {unit} {more}");
        }
        let share = self.reference.mean_of(self.metric).map(|mean| 100.0 * difference.abs() / mean.mean);
        let share = share.filter(|share| share.is_finite() && unit != "%");
        share.map_or(String::new(), |share| format!(": {} % {more}", number(round_to_two_digits(share))))
    }

    /// Describes the extent of the transfer, for a throughput: a longer transfer may have another winner. `None` if the
    /// transports delivered different amounts of data without a limit of time.
    pub fn describe_transfer_size(&self) -> Option<String> {
        if self.metric != Metric::Throughput {
            return None;
        }
        if let Some(lasts) = self.reference.conditions.lasts {
            return Some(format!("the first {lasts}"));
        }
        let megabytes = |cell: &Cell| {
            let bytes = cell.runs.iter().map(|run| run.bytes).sum::<u64>() as f64;
            bytes / cell.runs.len().max(1) as f64 / 1e6
        };
        let (ours, theirs) = (megabytes(self.challenger), megabytes(self.reference));
        let is_same = (ours - theirs).abs() <= 0.01 * theirs;
        is_same.then(|| format!("the first {} MB", number(round_to_digits(ours, 2))))
    }

    /// Describes in how many repetitions a run did not finish, if any; a sign test over all repetitions had to confirm
    /// the result.
    fn describe_early_ends(&self) -> String {
        if self.is_unsteady {
            return "; there is no steady state, so the conclusion, which is the same in the first and the second half of each run, holds only for runs of this length".to_owned();
        }
        let [pairs, others] =
            [self.challenger, self.reference].map(|cell| cell.values_by_run(self.metric).len());
        let pairs = pairs.min(others) as u64;
        match pairs - self.repetitions().min(pairs) {
            0 => String::new(),
            without => format!(
                "; in {without} of {pairs} repetitions a run did not finish, which counts as the worst result"
            ),
        }
    }

    /// Describes a quantile if the means do not decide: `the median message is as fast`.
    fn describe_quantile(&self, p: f64, name: &str) -> Option<String> {
        let quantile = compare_quantile(self.challenger, self.reference, p)?;
        Some(match quantile.verdict {
            ComparedPoint::NoDifference => format!("the {name} is {}", self.metric.info().equal),
            ComparedPoint::Undecided => format!("the {name} shows no clear difference"),
            _ => format!("the {name} is {}", self.describe_quantile_difference(quantile)),
        })
    }

    /// Returns the difference of a quantile: `51 % slower`.
    fn describe_quantile_difference(&self, quantile: QuantileComparison) -> String {
        let [better, worse] = self.metric.info().comparatives;
        let word = if quantile.verdict == ComparedPoint::Faster { better } else { worse };
        format!("{} % {word}", number(round_to_two_digits(quantile.percent)))
    }

    /// Describes the 99th percentile if it differs significantly and the mean does not, or if both differ in opposite
    /// directions.
    pub(super) fn describe_tail(&self) -> Option<String> {
        let has_mean = self.metric == Metric::ResponseTime && self.comparison.is_some();
        let outcome =
            Some(self.outcome()).filter(|_| has_mean && !self.is_exact() && !self.has_no_events())?;
        let tail = compare_tails(self.challenger, self.reference)?;
        let but = match (outcome, tail.verdict) {
            (_, ComparedPoint::NoDifference | ComparedPoint::Undecided)
            | (Outcome::Better, ComparedPoint::Faster)
            | (Outcome::Worse, ComparedPoint::Slower) => return None,
            (Outcome::Better | Outcome::Worse, _) => "but ",
            (Outcome::Same | Outcome::Undecided | Outcome::Unknown, _) => "",
        };
        Some(format!("{but}its 99th percentile is {}", self.describe_quantile_difference(tail)))
    }

    /// Explains why no winner is stated although the means differ, and states the conclusions that are possible.
    fn explain_few_timeouts(&self, lower: &Cell, timeouts: TimeoutCounts) -> String {
        let counted = |count: u64, one: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {one}s"),
        };
        let quantiles = [(0.5, "median message"), (0.9, "90th percentile")];
        let quantiles = quantiles.iter().filter_map(|(p, name)| self.describe_quantile(*p, name));
        let quantiles: String = quantiles.map(|text| format!("; {text}")).collect();
        format!(
            "; {} had only {} and {}: too few for a reliable mean, because each delays many messages{quantiles}",
            lower.transport,
            counted(timeouts.timeouts, "timeout"),
            counted(timeouts.backoffs, "backoff"),
        )
    }

    /// Describes the ranks if the means do not decide: a mean depends on rare runs, which have little weight in ranks.
    fn describe_ranks(&self) -> String {
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
        format!("; {name} is {word} in most runs, {of} of {}", lower + higher)
    }

    /// Describes which transport alone carries the load, and the state of the other one.
    fn describe_carrier(&self, carrier: Carrier) -> String {
        let [winner, loser] = match carrier.is_challenger {
            true => [self.challenger, self.reference],
            false => [self.reference, self.challenger],
        };
        match self.metric {
            Metric::Outage => {
                format!(
                    "{} recovers and {} does not: {}",
                    winner.transport,
                    loser.transport,
                    describe_missing_recovery(loser)
                )
            }
            _ => {
                // A sender that drops what it cannot deliver is never late.
                let verb = if lost_share(winner) < MAX_LOST { "carries the load" } else { "keeps up" };
                format!("only {} {verb}: {}", winner.transport, describe_overload(loser))
            }
        }
    }

    /// Describes how high the share of collapsed runs may be for the transport that carries the load: the confidence
    /// interval of its mean does not allow for more of them than there were.
    fn describe_possible_collapses(&self) -> Option<String> {
        let carrier = self.carrier.filter(|_| self.comparison.is_none() && self.metric != Metric::Outage)?;
        let winner = if carrier.is_challenger { self.challenger } else { self.reference };
        if winner.is_deterministic() {
            return None;
        }
        let (collapsed, runs) = (winner.collapsed_runs(), winner.runs.len());
        let share = ConfidenceInterval::of_share(collapsed as u64, runs as f64, CONFIDENCE)?;
        Some(format!(
            "; {collapsed} of {runs} runs of {name} collapsed, but the true share of collapsed runs may be as high as {} % (95 % CI), so the mean of {name} may be too low",
            number(round_to_two_digits(100.0 * share.high)),
            name = winner.transport
        ))
    }

    /// Describes lost messages, which are not in the means.
    pub fn describe_losses(&self) -> Option<String> {
        let lost = [self.challenger, self.reference].map(Cell::lost_messages);
        // Other metrics than response times count lost messages.
        if lost == [0, 0] || self.metric.info().unit != "ms" || self.metric == Metric::Outage {
            return None;
        }
        let one = |cell: &Cell| match cell.lost_messages() {
            0 => format!("{} none", cell.transport),
            n => {
                let (offered, share) = (cell.offered(), 100.0 * n as f64 / cell.offered() as f64);
                let (n, offered) = (number(n as f64), number(offered as f64));
                format!("{} lost {n} of {offered} ({} %)", cell.transport, number(round_to_two_digits(share)))
            }
        };
        Some(format!("not counting lost messages: {}, {}", one(self.challenger), one(self.reference)))
    }

    /// Describes the measurements if only one of the two transports recovers and this may be by chance.
    pub(super) fn describe_unconfirmed_recovery(&self) -> Option<String> {
        let carrier = self.carrier.filter(|_| self.metric == Metric::Outage && self.comparison.is_none())?;
        let runs = match self.challenger.runs.len().min(self.reference.runs.len()) {
            1 => "one repetition".to_owned(),
            runs => format!("{runs} repetitions"),
        };
        Some(format!(
            "{}, in {runs}; run more repetitions for a confidence interval",
            self.describe_carrier(carrier)
        ))
    }

    /// Returns why there is no comparison.
    pub(super) fn why_no_comparison(&self) -> String {
        let cells = [self.challenger, self.reference];
        let [a, b] = cells.map(|cell| &cell.transport);
        let what = if let Some(cell) = cells.iter().find(|cell| cell.latency.completed() == 0) {
            format!("nothing completed over {}", cell.transport)
        } else if self.metric == Metric::Outage {
            let [one, other] = cells.map(describe_missing_recovery);
            format!("neither {a} nor {b} recovers: {one}, {other}")
        } else if cells.iter().all(|cell| !cell.carries_load()) {
            let [one, other] = cells.map(describe_overload);
            format!("neither {a} nor {b} carries the load: {one}, {other}")
        } else if let Some(cell) = cells.iter().find(|cell| !cell.carries_load()) {
            format!(
                "it is not clear whether {} carries the load: {}",
                cell.transport,
                describe_overload(cell)
            )
        } else if let Some(cell) = cells.iter().find(|cell| !cell.is_steady) {
            format!("{} has no steady state: {}", cell.transport, cell.why_unsteady())
        } else {
            format!("in no repetition did both {a} and {b} complete anything")
        };
        what + ", so there is no comparison"
    }
}

/// Describes the comparison in a sentence.
pub fn verdict(metric: Metric, challenger: &Cell, reference: &Cell) -> String {
    let contest = TransportComparison::new(metric, challenger, reference);
    let (name, other, n) = (&challenger.transport, &reference.transport, contest.repetitions());
    let [better, worse] = metric.info().comparatives;
    let sentence = match (contest.outcome(), contest.difference_size()) {
        (Outcome::Better | Outcome::Worse, None) => {
            contest.describe_difference() + &contest.describe_possible_collapses().unwrap_or_default()
        }
        (_, None) => {
            return contest.describe_unconfirmed_recovery().unwrap_or_else(|| contest.why_no_comparison());
        }
        (outcome, Some(size)) => {
            let (value, unit) =
                (format!("{} {}", size.format_value(), size.unit), contest.describe_in_units());
            let [word, opposite] = if contest.gain() > 0.0 { [better, worse] } else { [worse, better] };
            let extent =
                contest.describe_transfer_size().map_or(String::new(), |extent| format!(" of {extent}"));
            let runs = format!("{n} paired runs{extent}{}", contest.describe_early_ends());
            let basis = match contest.is_exact() {
                true => format!("exact: nothing is random, and {n} runs are equal"),
                false if contest.all_repetitions_are_equal() => format!("the same in all {n} runs"),
                false => format!("95 % CI {} {}; {runs}", size.format_interval(), size.unit),
            };
            let is_same =
                TransportComparison::with_margin(metric, challenger, reference).outcome() == Outcome::Same;
            match outcome {
                _ if n < 2 => format!(
                    "{name} is {value} {word} than {other}{unit}, in one repetition; run more repetitions for a confidence interval"
                ),
                Outcome::Better | Outcome::Worse => {
                    let (typical, mean) = (contest.typical(), contest.describe_ratio_of_means());
                    let mean = mean.map_or(String::new(), |mean| format!("; {mean}"));
                    format!("{name} is {value} {word} than {other}{typical}{unit} ({basis}{mean})")
                }
                Outcome::Same => format!("{name} is exactly {} as {other} ({runs})", metric.info().equal),
                Outcome::Undecided if contest.has_no_events() => format!(
                    "too few losses to compare {name} and {other}: the difference is the same {} {} in all {n} repetitions; run more repetitions",
                    number(round_to_two_digits(size.value)),
                    size.unit
                ),
                Outcome::Undecided | Outcome::Unknown if is_same => format!(
                    "{name} is {} as {other} within {} % (95 % CI {}; {runs})",
                    metric.info().equal,
                    number(100.0 * NEGLIGIBLE),
                    size.format_signed_interval(word, opposite)
                ),
                Outcome::Undecided | Outcome::Unknown => {
                    let explanation = contest
                        .transport_with_few_timeouts()
                        .map(|(lower, timeouts)| contest.explain_few_timeouts(lower, timeouts));
                    let rest = explanation.unwrap_or_else(|| contest.describe_ranks());
                    let difference = contest.describe_unclear_difference(&format!("; {runs}"));
                    format!("No clear difference between {name} and {other}: {difference}{rest}")
                }
            }
        }
    };
    let more = [contest.describe_tail(), contest.describe_losses()].into_iter().flatten();
    more.fold(sentence, |sentence, more| format!("{sentence}, {more}"))
}

#[cfg(test)]
mod tests {
    use hol_base::{Digest, Duration};

    use super::*;
    use crate::testing::{cell, cell_with, flow, set};
    use hol_measure::{LatencySum, RunHalves};

    /// Returns the verdict. An interval across zero names the direction of both ends.
    fn says(challenger: &Cell, reference: &Cell) -> String {
        let text = verdict(Metric::ResponseTime, challenger, reference);
        assert!(!text.contains("CI -"), "{text}");
        text
    }

    #[test]
    fn verdict_states_the_difference_and_its_interval() {
        let (tcp, sctp) =
            (cell("TCP", 1.0, 100.0, &[40.0, 40.2, 40.1]), cell("SCTP-8", 1.0, 100.0, &[30.0, 30.1, 30.1]));
        assert_eq!(
            says(&sctp, &tcp),
            "SCTP-8 is 25.0 % faster than TCP: 10 ms less (95 % CI 24.8 to 25.3 %; 3 paired runs)"
        );
        assert!(says(&tcp, &sctp).starts_with("TCP is 33.4 % slower than SCTP-8: 10 ms more"));
        assert!(says(&tcp, &tcp).contains("exactly as fast as"));
        let once = cell("TCP", 1.0, 100.0, &[40.0]);
        assert!(says(&once, &cell("SCTP-8", 1.0, 100.0, &[30.0])).contains("in one repetition"));
    }

    #[test]
    fn deterministic_result_is_exact_and_has_no_interval() {
        let (tcp, sctp) = (cell("TCP", 0.0, 100.0, &[20.0; 10]), cell("SCTP-8", 0.0, 100.0, &[20.022; 10]));
        assert_eq!(
            says(&sctp, &tcp),
            "SCTP-8 is 0.110 % slower than TCP: 0.022 ms more (exact: nothing is random, and 10 runs are equal)"
        );
        assert!(TransportComparison::new(Metric::ResponseTime, &sctp, &tcp).is_decisive());
    }

    /// Gives each repetition records of its own.
    fn with_own_records(mut cell: Cell) -> Cell {
        cell.runs.iter_mut().zip(1..).for_each(|(run, number)| run.digest = Digest(number));
        cell
    }

    /// Without retransmissions a loss delays no other message. Nor do Poisson arrivals on an idle path.
    #[test]
    fn runs_with_equal_means_are_exact_only_if_their_records_are_the_same() {
        let cells =
            |loss| [("UDP", 20.0), ("SCTP", 20.022)].map(|(name, ms)| cell(name, loss, 100.0, &[ms; 10]));
        let [udp, unordered] = cells(1.0);
        let text = says(&unordered, &udp);
        assert!(text.starts_with("too few losses"), "{text}");
        assert!(text.contains("the same 0.11 % in all 10 repetitions"), "{text}");
        for loss in [0.0, 1.0] {
            let [udp, unordered] = cells(loss).map(with_own_records);
            let text = says(&unordered, &udp);
            assert!(text.contains("(the same in all 10 runs)"), "{loss}: {text}");
        }
        let [udp, unordered] = cells(1.0).map(with_own_records);
        let text = says(&unordered, &udp);
        assert!(
            text.starts_with("SCTP is 0.110 % slower than UDP: 0.022 ms more (the same in all 10 runs)"),
            "{text}"
        );
    }

    #[test]
    fn shares_differ_by_percentage_points_and_count_losses() {
        let [udp, mut tcp] = ["UDP", "TCP"].map(|name| with_own_records(cell(name, 1.0, 100.0, &[20.0; 3])));
        for run in &mut tcp.runs {
            (run.offered, run.unfinished) = (2, 1);
        }
        let text = verdict(Metric::Delivered, &udp, &tcp);
        assert_eq!(text, "UDP is 50.0 percentage points more reliable than TCP (the same in all 3 runs)");
        let time = says(&udp, &tcp);
        assert!(time.ends_with("not counting lost messages: UDP none, TCP lost 3 of 6 (50 %)"), "{time}");
    }

    #[test]
    fn throughput_names_the_amount_or_the_time_of_the_transfer() {
        let [mut tcp, mut quic] = ["TCP", "QUIC"].map(|name| flow(name, &[], &[8000.0; 3], 9000.0));
        for run in tcp.runs.iter_mut().chain(&mut quic.runs) {
            run.bytes = 5_000_000;
        }
        let extent =
            |quic: &Cell| TransportComparison::new(Metric::Throughput, quic, &tcp).describe_transfer_size();
        assert_eq!(extent(&quic).as_deref(), Some("the first 5 MB"));
        quic.runs.iter_mut().for_each(|run| run.bytes = 4_000_000);
        // A transport that gives messages up delivers less without a limit of time.
        assert_eq!(extent(&quic), None);
        tcp.conditions.lasts = Some(Duration::from_secs(2));
        let contest = TransportComparison::new(Metric::Throughput, &quic, &tcp);
        assert_eq!(contest.describe_transfer_size().as_deref(), Some("the first 2s"));
    }

    #[test]
    fn sentence_states_the_confidence_level_once() {
        let tcp = cell("TCP", 1.0, 100.0, &[22.0, 25.0, 21.0, 24.0]);
        let sctp = cell("SCTP-8", 1.0, 100.0, &[23.0, 21.0, 24.0, 23.5]);
        for text in [says(&sctp, &tcp), says(&tcp, &cell("TCP", 1.0, 100.0, &[12.0, 15.0, 11.0, 14.0]))] {
            assert_eq!(text.matches("95 %").count(), 1, "{text}");
        }
    }

    /// SCTP over eight streams in the first example of the help: in nine of ten seeds no timeout directly follows another.
    #[test]
    fn too_few_timeouts_leave_the_winner_open() {
        let tcp = cell("TCP", 1.0, 100.0, &[21.8, 21.7, 21.9, 21.8]);
        let mut sctp = cell("SCTP-8", 1.0, 100.0, &[21.2, 21.1, 21.3, 21.15]);
        assert!(says(&sctp, &tcp).contains("faster"));
        let timeouts = TimeoutCounts {
            timeouts: 2,
            backoffs: 0,
            lost_again: 0.02,
            stall_s: 1.02,
            rate: 12.5,
            messages: 10_000,
        };
        sctp.timeouts = Some(timeouts);
        let text = says(&sctp, &tcp);
        let start =
            "No clear difference between SCTP-8 and TCP: the mean response time of SCTP-8 is 3 % lower";
        assert!(text.starts_with(start), "{text}");
        assert!(
            text.contains("SCTP-8 had only 2 timeouts and 0 backoffs: too few for a reliable mean"),
            "{text}"
        );
        assert!(
            text.ends_with("the median message is 2.8 % faster; the 90th percentile is 2.8 % faster"),
            "{text}"
        );
        let contest = TransportComparison::new(Metric::ResponseTime, &sctp, &tcp);
        assert_eq!((contest.outcome(), contest.is_decisive()), (Outcome::Undecided, false));
        // The opposite order is decided: a timeout that did not occur would make it slower still.
        let slow = cell("TCP", 1.0, 100.0, &[20.8, 20.7, 20.9, 20.8]);
        assert_eq!(TransportComparison::new(Metric::ResponseTime, &sctp, &slow).outcome(), Outcome::Worse);
        // With enough timeouts the sample includes their cost.
        sctp.timeouts =
            Some(TimeoutCounts { timeouts: 4000, backoffs: 80, messages: 10_000_000, ..timeouts });
        assert!(says(&sctp, &tcp).contains("faster"));
    }

    /// A stream for each message avoids most waits, but makes the slowest messages slower.
    #[test]
    fn opposite_difference_of_the_tail_is_reported() {
        let runs = |many: f64, slowest: f64| -> Vec<Vec<f64>> {
            let run =
                |noise: f64| (0..1000).map(|at| noise * if at < 980 { many } else { slowest }).collect();
            [0.99, 1.0, 1.01, 1.02].map(run).to_vec()
        };
        let tcp = cell_with("TCP", 1.0, 100.0, &runs(40.0, 100.0));
        let quic = cell_with("QUIC", 1.0, 100.0, &runs(20.0, 150.0));
        let text = says(&quic, &tcp);
        assert!(text.starts_with("QUIC is 45.1 % faster than TCP"), "{text}");
        assert!(text.ends_with(", but its 99th percentile is 50 % slower"), "{text}");
        assert!(says(&tcp, &quic).ends_with(", but its 99th percentile is 33 % faster"));
        // Nothing is added if mean and percentile agree, or if a run is too short to have a tail.
        assert!(says(&cell_with("QUIC", 1.0, 100.0, &runs(20.0, 60.0)), &tcp).ends_with("paired runs)"));
    }

    #[test]
    fn ranks_are_reported_if_rare_runs_dominate_the_mean() {
        let mut spread = [21.5; 20];
        spread[7] = 60.0;
        let spread = cell("SCTP-1024", 1.0, 100.0, &spread);
        let text = says(&spread, &cell("TCP", 1.0, 100.0, &[22.0; 20]));
        assert!(
            text.starts_with("No clear difference")
                && text.ends_with("; SCTP-1024 is faster in most runs, 19 of 20"),
            "{text}"
        );
    }

    #[test]
    fn run_that_ends_early_counts_as_the_worst_repetition() {
        let tcp = cell("TCP", 1.0, 100.0, &[25.0; 10]);
        let times = [21.0, 21.1, 21.2, 21.0, 21.1, 21.2, 21.3, 21.05, 21.15, 21.0];
        let mut sctp = cell("SCTP-8", 1.0, 100.0, &times);
        (sctp.stop_reason, sctp.ended_early) = (Some("behind schedule".to_owned()), vec![false; 10]);
        sctp.ended_early[9] = true;
        let text = says(&sctp, &tcp);
        assert!(
            text.starts_with("SCTP-8 is 15.")
                && text.contains("; in 1 of 10 repetitions a run did not finish"),
            "{text}"
        );
        sctp.ended_early = (0..10).map(|at| at < 4).collect();
        assert!(says(&sctp, &tcp).starts_with("No clear difference"), "{}", says(&sctp, &tcp));
    }

    fn disrupted(name: &str, ms: &[f64], is_over: bool) -> Cell {
        let mut cell = cell(name, 0.0, 20.0, ms);
        let outage = |ms: &f64| hol_measure::Outage {
            at: hol_base::Duration::from_secs(5),
            since: hol_base::Duration::from_secs(5),
            longest: hol_base::Duration::from_secs_f64(ms / 1000.0),
            is_over,
            late: 1,
            lost: u64::from(!is_over),
            first: None,
            last: None,
        };
        cell.outages = ms.iter().map(|ms| vec![outage(ms)]).collect();
        set(&mut cell, Metric::Outage, ms.iter().map(|ms| is_over.then_some(*ms)).collect());
        cell
    }

    #[test]
    fn transport_that_does_not_recover_is_worse() {
        let of = |challenger: &Cell, reference: &Cell| verdict(Metric::Outage, challenger, reference);
        let (slow, fast) = (disrupted("SCTP", &[1000.0; 3], true), disrupted("fast", &[250.0; 3], true));
        assert!(
            of(&fast, &slow).starts_with("fast is 75.0 % quicker to recover than SCTP: 750 ms less"),
            "{}",
            of(&fast, &slow)
        );
        let dead = disrupted("TCP", &[360_000.0; 3], false);
        assert_eq!(
            of(&fast, &dead),
            "fast recovers and TCP does not: in 3 of 3 runs of TCP nothing more is delivered"
        );
        let contest = TransportComparison::with_margin(Metric::Outage, &dead, &slow);
        assert_eq!((contest.outcome(), contest.is_decisive()), (Outcome::Worse, true), "nothing is random");
        let once = [&disrupted("fast", &[250.0], true), &disrupted("TCP", &[360_000.0], false)];
        assert!(
            of(once[0], once[1])
                .ends_with("in one repetition; run more repetitions for a confidence interval")
        );
        assert!(of(&dead, &dead).starts_with("neither TCP nor TCP recovers"));
    }

    /// Two of three times are half as long, the third is twice as long.
    #[test]
    fn ratio_that_the_means_contradict_keeps_its_direction() {
        let [mptcp, tcp] = [[3630.0, 3630.0, 17_461.0], [7913.0, 7912.0, 7915.0]]
            .map(|ms| cell(if ms[0] < 4000.0 { "MPTCP" } else { "TCP" }, 1.0, 100.0, &ms));
        let text = TransportComparison::with_margin(Metric::ResponseTime, &mptcp, &tcp)
            .describe_unclear_difference("");
        let expected = "the mean response time of MPTCP is 23 % lower in a typical run (95 % CI 636 % higher to 92 % lower), but its mean over all runs is 4.1 % higher";
        assert_eq!(text, expected);
        let [fast, slow] = [("UDP", [10.0, 10.0, 11.0]), ("TCP", [20.0, 20.0, 300.0])]
            .map(|(name, ms)| cell(name, 1.0, 100.0, &ms));
        let text = TransportComparison::with_margin(Metric::ResponseTime, &fast, &slow)
            .describe_unclear_difference("");
        assert!(text.ends_with(", and its mean over all runs is 91 % lower"), "{text}");
    }

    #[test]
    fn overloaded_transport_states_the_load_that_it_carries() {
        let tcp = cell("TCP", 1.0, 100.0, &[25.0, 24.0, 26.0, 25.0, 25.5, 24.5, 25.0, 25.0]);
        let mut sctp = cell("SCTP", 1.0, 100.0, &[21.0; 8]);
        sctp.runs.iter_mut().for_each(|run| run.behind = hol_base::Duration::from_secs(2));
        (sctp.is_steady, sctp.load) =
            (false, Some(hol_lab::PointLoad { offered: 3.2, carried: 2.13, path_rate: None }));
        let text = says(&sctp, &tcp);
        assert!(
            text.ends_with("fell more than a second behind: it carries about 2.1 of the offered 3.2 Mbit/s"),
            "{text}"
        );
        sctp.load = Some(hol_lab::PointLoad { offered: 3.2, carried: 2.13, path_rate: Some(2.46) });
        let text = says(&sctp, &tcp);
        assert!(
            text.ends_with(
                "it carries about 2.1 of the offered 3.2 Mbit/s over a path of 2.5 Mbit/s on average"
            ),
            "{text}"
        );
    }

    #[test]
    fn transport_that_carries_the_load_in_eight_runs_may_collapse_in_others() {
        let mut tcp = cell("TCP", 1.0, 100.0, &[25.0, 24.0, 26.0, 25.0, 25.5, 24.5, 25.0, 25.0]);
        (0..).zip(&mut tcp.runs).for_each(|(seed, run)| run.digest = hol_base::Digest(seed));
        let mut sctp = cell("SCTP-8", 1.0, 100.0, &[21.0; 8]);
        (sctp.stop_reason, sctp.ended_early) = (Some("behind schedule".to_owned()), vec![true; 8]);
        let text = says(&sctp, &tcp);
        let end = "; 0 of 8 runs of TCP collapsed, but the true share of collapsed runs may be as high as 32 % (95 % CI), so the mean of TCP may be too low";
        assert!(
            text.starts_with("only TCP carries the load: 8 of 8 runs of SCTP-8") && text.ends_with(end),
            "{text}"
        );
    }

    #[test]
    fn transport_that_does_not_carry_the_load_loses() {
        let tcp = cell("TCP", 1.0, 100.0, &[25.0, 24.0, 26.0, 25.0, 25.5, 24.5, 25.0, 25.0]);
        let mut sctp = cell("SCTP-8", 1.0, 100.0, &[21.0; 8]);
        (sctp.stop_reason, sctp.ended_early) = (Some("behind schedule".to_owned()), vec![true; 8]);
        assert_eq!(
            says(&sctp, &tcp),
            "only TCP carries the load: 8 of 8 runs of SCTP-8 ended early or fell behind (behind schedule)"
        );
        let mut udp = tcp.clone();
        (udp.transport, udp.runs[0].completed) = ("UDP".to_owned(), 0);
        let text = says(&sctp, &udp);
        assert!(text.starts_with("only UDP keeps up: 8 of 8 runs of SCTP-8 ended early"), "{text}");
        let contest = TransportComparison::with_margin(Metric::ResponseTime, &sctp, &tcp);
        assert_eq!((contest.outcome(), contest.is_decisive()), (Outcome::Worse, true));
        assert_eq!(
            TransportComparison::with_margin(Metric::ResponseTime, &tcp, &sctp).outcome(),
            Outcome::Better
        );
        // Five of eight against none are not significant, and two that fail are not compared.
        sctp.ended_early = (0..8).map(|at| at < 5).collect();
        assert_eq!(
            TransportComparison::new(Metric::ResponseTime, &sctp, &tcp).adjusted(0.06).outcome(),
            Outcome::Unknown
        );
        assert!(says(&sctp, &sctp).starts_with("neither SCTP-8 nor SCTP-8 carries the load"));
    }

    /// SCTP at 1000/s with 1 % loss: eight of ten runs wait more than a second for a timeout, without a trend.
    #[test]
    fn load_is_judged_before_times() {
        let with_late_runs = |name: &str, ms: f64, late: usize| {
            let means: Vec<f64> = (0..10).map(|n| ms + f64::from(n) / 100.0).collect();
            let mut cell = with_own_records(cell(name, 1.0, 1000.0, &means));
            cell.runs.iter_mut().take(late).for_each(|run| run.behind = Duration::from_secs(2));
            cell
        };
        let contest = |sctp: usize, tcp: usize| {
            let (sctp, tcp) = (with_late_runs("SCTP", 144.0, sctp), with_late_runs("TCP", 29.0, tcp));
            let outcome = TransportComparison::with_margin(Metric::ResponseTime, &sctp, &tcp).outcome();
            (outcome, says(&sctp, &tcp))
        };
        let is_said = |(outcome, text): (Outcome, String), expected: Outcome, start: &str| {
            assert!(outcome == expected && text.starts_with(start), "{outcome:?}: {text}");
        };
        is_said(contest(8, 0), Outcome::Worse, "only TCP carries the load: 8 of 10 runs of SCTP fell");
        is_said(contest(8, 7), Outcome::Unknown, "neither SCTP nor TCP carries the load");
        // If a difference in load is not significant, or most runs carry it, times are compared.
        is_said(contest(6, 4), Outcome::Worse, "SCTP is 396 % slower than TCP");
        is_said(contest(3, 0), Outcome::Worse, "SCTP is 396 % slower than TCP");
    }

    /// In 31 of 400 runs of SCTP the backlog grew so much that it dominates the sum over all runs.
    #[test]
    fn a_growing_backlog_in_few_runs_is_no_overload() {
        let total = |ms: u64| LatencySum { count: 1, nanos: u128::from(ms) * 1_000_000 };
        let with_growing_runs = |growing: usize| {
            let mut sctp = cell("SCTP", 1.0, 1000.0, &[30.0; 10]);
            for (number, run) in sctp.runs.iter_mut().enumerate() {
                let later = if number < growing { 900 } else { 31 };
                run.halves = RunHalves { earlier: total(30), later: total(later) };
            }
            sctp.is_steady = false;
            sctp.carries_load()
        };
        assert_eq!([1, 5, 6].map(with_growing_runs), [true, true, false]);
    }

    /// BBR at 0.3 % loss in runs of 16 s: 43 ms, then 56 ms, and CUBIC 95 ms, then 134 ms.
    #[test]
    fn winner_without_a_steady_state_wins_in_both_halves() {
        let drifting = |name: &str, [earlier, later]: [u64; 2]| {
            let mean = (earlier + later) as f64 / 200.0;
            let percent = if name == "BBR" { [98, 101, 102, 99] } else { [101, 102, 99, 98] };
            let mut cell = cell(name, 1.0, 100.0, &percent.map(|noise: u64| noise as f64 * mean));
            for (run, noise) in cell.runs.iter_mut().zip(percent) {
                let total = |ms: u64| LatencySum { count: 1, nanos: u128::from(ms * noise * 10_000) };
                run.halves = RunHalves { earlier: total(earlier), later: total(later) };
            }
            cell.is_steady = false;
            cell
        };
        let (bbr, cubic) = (drifting("BBR", [43, 56]), drifting("CUBIC", [95, 134]));
        let text = says(&bbr, &cubic);
        assert!(text.starts_with("BBR is 57 % faster than CUBIC"), "{text}");
        assert!(
            text.contains("which is the same in the first and the second half of each run, holds only for runs of this length"),
            "{text}"
        );
        let outcome = |a, b| TransportComparison::with_margin(Metric::ResponseTime, a, b).outcome();
        assert_eq!((outcome(&bbr, &cubic), outcome(&cubic, &bbr)), (Outcome::Better, Outcome::Worse));
        // One that is faster at first and slower later is undecided.
        let crossing = drifting("BBR", [80, 150]);
        assert_eq!(outcome(&crossing, &cubic), Outcome::Undecided);
        // A transport that takes three times as long in the later half does not carry the load.
        let growing = drifting("BBR", [40, 140]);
        assert_eq!(outcome(&growing, &cubic), Outcome::Worse);
    }

    #[test]
    fn verdict_counts_lost_messages() {
        let (tcp, mut udp) = (cell("TCP", 1.0, 100.0, &[40.0, 40.2]), cell("UDP", 1.0, 100.0, &[30.0, 30.2]));
        for run in &mut udp.runs {
            run.offered = 4;
        }
        let text = says(&udp, &tcp);
        assert!(text.ends_with(", not counting lost messages: UDP lost 6 of 8 (75 %), TCP none"), "{text}");
    }

    /// CUBIC was faster than Reno in the first 82 MB, and slower in 16 times as many.
    #[test]
    fn throughput_verdict_names_the_size_of_the_transfer() {
        let of = |name: &str, kbps: &[f64]| {
            let mut cell = flow(name, &[], kbps, 10_000.0);
            cell.runs.iter_mut().for_each(|run| run.bytes = 82_000_000);
            cell
        };
        let text = verdict(
            Metric::Throughput,
            &of("CUBIC", &[200.0, 202.0, 201.0]),
            &of("Reno", &[100.0, 101.0, 100.0]),
        );
        assert!(text.ends_with("; 3 paired runs of the first 82 MB)"), "{text}");
    }

    #[test]
    fn adjusted_p_value_can_undo_a_verdict() {
        let (tcp, sctp) =
            (cell("TCP", 1.0, 100.0, &[40.0, 40.2, 40.1]), cell("SCTP-8", 1.0, 100.0, &[30.0, 30.1, 30.1]));
        let contest = TransportComparison::new(Metric::ResponseTime, &sctp, &tcp);
        assert_eq!(contest.outcome(), Outcome::Better);
        assert_eq!(contest.adjusted(0.06).outcome(), Outcome::Undecided);
    }

    #[test]
    fn shares_have_two_digits() {
        assert_eq!(
            [0.0, 0.0123, 1.26, 12.6, 126.4].map(round_to_two_digits).map(number),
            ["0", "0.012", "1.3", "13", "126"]
        );
    }
}
