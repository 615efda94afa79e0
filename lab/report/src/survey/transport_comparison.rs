//! Compares two transports under the same conditions: which is better, by how much, and with what loss of messages.

use hol_lab::Metric;
use hol_measure::{CONFIDENCE, Comparison, TimeoutCounts};

use super::carrier::Carrier;
use super::halves::compare_halves;
use super::size::DifferenceSize;
use crate::claims::{compare, compare_times};
use crate::data::Cell;

/// The largest difference that counts as negligible, as a share.
pub const NEGLIGIBLE: f64 = 0.005;

/// The p-value below which a difference is significant.
pub(super) const ALPHA: f64 = 1.0 - CONFIDENCE;
/// The p-value below which more repetitions would not change the result.
const DECISIVE_P: f64 = ALPHA / 10.0;

/// The outcome of a comparison for the challenger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The challenger is significantly better, or is the only transport that carries the load.
    Better,
    /// The challenger is significantly worse, or only the reference carries the load.
    Worse,
    /// The transports are significantly equivalent.
    Same,
    /// The repetitions do not decide which transport is better.
    Undecided,
    /// Neither transport carries the load, or one of them has no meaningful value.
    Unknown,
}

/// The comparison of one transport, the challenger, with another one, the reference, under the same conditions.
#[derive(Debug, Clone)]
pub struct TransportComparison<'d> {
    pub(super) challenger: &'d Cell,
    pub(super) reference: &'d Cell,
    pub(super) metric: Metric,
    /// The comparison of the means; for times, of their logarithms.
    pub(super) comparison: Option<Comparison>,
    pub(super) is_ratio: bool,
    /// Whether one of the transports has no steady state. The outcome then applies to runs of this length only, and is
    /// the same in both halves of the runs.
    pub(super) is_unsteady: bool,
    /// The transport that carries the load, if only one does.
    pub(super) carrier: Option<Carrier>,
    /// The p-value, adjusted for the family of tests.
    pub(super) p: f64,
    pub(super) p_equivalent: f64,
}

/// Returns the share of messages that never arrived.
pub(super) fn lost_share(cell: &Cell) -> f64 {
    cell.lost_messages() as f64 / cell.offered().max(1) as f64
}

/// Returns whether the values of a metric do not differ by more than its resolution.
fn are_equal(values: &[f64], metric: Metric) -> bool {
    values.windows(2).all(|pair| (pair[0] - pair[1]).abs() <= metric.resolution())
}

impl<'d> TransportComparison<'d> {
    /// Compares the repetitions with the same losses. The transports count as the same only if they differ by less than
    /// the resolution of the metric.
    pub fn new(metric: Metric, challenger: &'d Cell, reference: &'d Cell) -> Self {
        Self::compare(metric.resolution(), metric, challenger, reference)
    }

    /// Compares with a margin: a difference of less than [`NEGLIGIBLE`] of the reference counts as zero.
    pub fn with_margin(metric: Metric, challenger: &'d Cell, reference: &'d Cell) -> Self {
        let margin = reference.mean_of(metric).map_or(0.0, |mean| NEGLIGIBLE * mean.mean.abs());
        Self::compare(margin.max(metric.resolution()), metric, challenger, reference)
    }

    fn compare(margin: f64, metric: Metric, challenger: &'d Cell, reference: &'d Cell) -> Self {
        let is_time = metric.info().unit == "ms";
        let share = reference.mean_of(metric).map_or(0.0, |mean| margin / mean.mean.abs());
        let needs_load = metric.info().needs_load;
        let overloaded = [challenger, reference].map(|cell| needs_load && cell.is_mostly_overloaded());
        let surely_only_one = (overloaded[0] != overloaded[1])
            .then(|| Carrier::of(challenger, reference))
            .flatten()
            .filter(|carrier| carrier.p < ALPHA);
        // Times of messages that wait ever longer depend on the length of the runs.
        let is_comparable = surely_only_one.is_none() && overloaded != [true; 2];
        let times = || compare_times(metric, challenger, reference, share);
        let ratio = (is_comparable && is_time).then(times).flatten();
        let comparison =
            ratio.or_else(|| is_comparable.then(|| compare(metric, challenger, reference, margin))?);
        let needs_load = needs_load && comparison.is_none();
        let carrier = match metric {
            Metric::Outage if comparison.is_none() => Carrier::by_recovery(challenger, reference),
            _ if needs_load => surely_only_one.or_else(|| Carrier::of(challenger, reference)),
            _ => None,
        };
        let is_due = |cell: &Cell| cell.carries_load() && cell.conditions.rate > 0.0;
        let is_unsteady = needs_load && is_due(challenger) && is_due(reference);
        let halves = (is_unsteady && metric == Metric::ResponseTime)
            .then(|| compare_halves(challenger, reference, NEGLIGIBLE))
            .flatten();
        let comparison = comparison.or(halves);
        let mut contest = Self {
            challenger,
            reference,
            metric,
            comparison,
            is_ratio: ratio.is_some() || halves.is_some(),
            is_unsteady: halves.is_some(),
            carrier,
            p: 1.0,
            p_equivalent: comparison.map_or(1.0, |test| test.p_equivalent),
        };
        contest.p = contest.p_value().unwrap_or(1.0);
        contest
    }

    /// Returns the p-value before adjustment; `None` if there is no comparison.
    pub fn p_value(&self) -> Option<f64> {
        let means = self.comparison.map(|test| test.p.max(test.p_beyond));
        means.or_else(|| self.carrier.map(|carrier| carrier.p))
    }

    /// Returns whether more repetitions would only add precision. This is so if nothing is random, or if
    /// random events have occurred and a p-value is below a tenth of the significance level.
    pub fn is_decisive(&self) -> bool {
        let is_sure = self.p < DECISIVE_P || self.p_equivalent < DECISIVE_P;
        self.is_exact() || (is_sure && !self.has_no_events())
    }

    /// Returns whether the network is random but has not changed a packet: too few losses have occurred.
    pub fn has_no_events(&self) -> bool {
        let is_random = |cell: &Cell| cell.conditions.is_random;
        self.runs_are_identical() && is_random(self.challenger) && is_random(self.reference)
    }

    /// Returns whether all repetitions of both transports were the same and nothing is random.
    pub fn is_exact(&self) -> bool {
        self.runs_are_identical() && !self.has_no_events()
    }

    /// Returns whether the repetitions of each transport have the same records.
    fn runs_are_identical(&self) -> bool {
        let cells = [self.challenger, self.reference];
        self.repetitions() > 1
            && self.all_repetitions_are_equal()
            && cells.into_iter().all(Cell::is_deterministic)
    }

    pub(super) fn all_repetitions_are_equal(&self) -> bool {
        !self.is_unsteady
            && [self.challenger, self.reference].into_iter().all(|cell| {
                are_equal(
                    &cell.values_by_run(self.metric).into_iter().flatten().collect::<Vec<_>>(),
                    self.metric,
                )
            })
    }

    /// Returns the comparison with the p-value `p`, adjusted for a family of tests.
    pub fn adjusted(self, p: f64) -> Self {
        Self { p, ..self }
    }

    /// Returns the comparison as one of several tests that have to hold together (Bonferroni).
    pub fn corrected_for(self, tests: usize) -> Self {
        let factor = tests as f64;
        Self { p: (self.p * factor).min(1.0), p_equivalent: (self.p_equivalent * factor).min(1.0), ..self }
    }

    /// Returns whether the challenger is better or worse, if that is decided.
    pub fn outcome(&self) -> Outcome {
        if let (None, Some(carrier)) = (&self.comparison, self.carrier) {
            return match carrier.is_challenger {
                _ if self.p >= ALPHA => Outcome::Unknown,
                true => Outcome::Better,
                false => Outcome::Worse,
            };
        }
        match &self.comparison {
            None => Outcome::Unknown,
            Some(_) if self.has_no_events() => Outcome::Undecided,
            Some(_) if self.p_equivalent < ALPHA => Outcome::Same,
            Some(_) if self.p >= ALPHA => Outcome::Undecided,
            Some(_) if self.gain() > 0.0 => Outcome::Better,
            Some(_) => Outcome::Worse,
        }
    }

    /// Returns how much better the challenger is, in the unit of the metric; NaN if unknown.
    pub fn gain(&self) -> f64 {
        self.metric.gain(self.difference())
    }

    /// Returns the difference of the means, challenger minus reference, in the metric's unit. Only pairs in
    /// which both have a value count.
    pub fn difference(&self) -> f64 {
        let (ours, theirs) = self.means_of_pairs();
        ours - theirs
    }

    /// Returns the means of challenger and reference over the pairs of repetitions in which both have a
    /// value. NaN if there is no such pair, or no comparison.
    pub(super) fn means_of_pairs(&self) -> (f64, f64) {
        let [ours, theirs] = [self.challenger, self.reference].map(|cell| match self.is_unsteady {
            true => cell.of_completed_runs(|run| run.latency.mean_ms()),
            false => cell.values_by_run(self.metric),
        });
        let (ours, theirs): (Vec<f64>, Vec<f64>) =
            ours.into_iter().zip(theirs).filter_map(|(a, b)| a.zip(b)).unzip();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        match self.comparison {
            Some(_) => (mean(ours), mean(theirs)),
            None => (f64::NAN, f64::NAN),
        }
    }

    /// Returns the number of pairs of repetitions.
    pub fn repetitions(&self) -> u64 {
        self.comparison.map_or(0, |comparison| comparison.difference.n)
    }

    /// Returns half the width of the observed difference's interval, in logarithms for times; `None` without a comparison.
    pub fn half_width(&self) -> Option<f64> {
        self.comparison.map(|comparison| comparison.difference.half_width)
    }

    /// Returns whether only one of the two transports carries the load, so that no means are compared.
    pub const fn compares_load_only(&self) -> bool {
        self.comparison.is_none() && self.carrier.is_some()
    }

    /// Returns the difference of the means in percent of the reference, as a table shows it. It may differ from the
    /// typical ratio of two runs, because a few long times move the ratio of means more than the mean of ratios. `None`
    /// if both are nearly the same, or if no ratios are compared.
    pub(super) fn ratio_of_means(&self) -> Option<f64> {
        let typical = 100.0 * self.comparison.filter(|_| self.is_ratio)?.difference.mean.exp_m1();
        let (ours, theirs) = self.means_of_pairs();
        let share = 100.0 * (ours / theirs - 1.0);
        let apart = (share - typical).abs();
        let is_apart = apart > 1.0 && apart > 0.05 * typical.abs();
        (is_apart && self.repetitions() > 1 && !self.is_unsteady).then_some(share)
    }

    /// Returns the size of the difference as sentences state it: for times in percent; `None` without a comparison.
    pub(super) fn size(&self) -> Option<f64> {
        Some(self.difference_size()?.value)
    }

    /// Returns the absolute difference: in percent if the metric is a time, otherwise in the metric's own unit.
    pub(super) fn difference_size(&self) -> Option<DifferenceSize> {
        let Comparison { difference, low, high, .. } = self.comparison?;
        let (mean, unit) = match self.is_ratio {
            true => (difference.mean, "%"),
            false if self.metric.info().unit == "%" => (difference.mean, "percentage points"),
            false => (difference.mean, self.metric.info().unit),
        };
        let of = |end: f64| if self.is_ratio { 100.0 * end.exp_m1() } else { end };
        let (value, low, high) = (of(mean), of(low), of(high));
        let is_less = mean < 0.0;
        let (value, low, high) = if is_less { (-value, -high, -low) } else { (value, low, high) };
        Some(DifferenceSize { value, low, high, unit })
    }

    /// Returns the transport whose mean may be too low because few timeouts occurred, with its timeouts;
    /// `None` if enough occurred.
    pub fn transport_with_few_timeouts(&self) -> Option<(&'d Cell, TimeoutCounts)> {
        let Comparison { difference, .. } = self.comparison?;
        let was_sure = difference.mean.abs() > difference.half_width;
        let lower = if difference.mean < 0.0 { self.challenger } else { self.reference };
        let timeouts = lower.timeouts.filter(|_| self.metric == Metric::ResponseTime)?;
        let is_open = was_sure && self.outcome() == Outcome::Undecided && timeouts.are_rare();
        is_open.then_some((lower, timeouts))
    }

    /// Returns the difference between the shares of messages that never arrived.
    pub fn loss_difference(&self) -> f64 {
        (lost_share(self.challenger) - lost_share(self.reference)).abs()
    }
}
