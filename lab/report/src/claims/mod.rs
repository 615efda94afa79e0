//! Claims of a paper, declared in its study's `claims.toml`, judged by code on the measured points.

mod area;
mod axis_bounds;
mod blocking;
mod ceiling;
mod comparison;
mod connect_time;
mod crossover;
mod delay_components;
mod dip;
mod equivalence;
#[cfg(test)]
mod false_worlds;
mod finding;
mod floor;
mod interval_width;
mod kind;
mod line_counts;
mod measurement_scale;
mod omission;
mod order;
mod paper_text;
mod ratio;
mod reported_values;
mod stream_count;
mod streams;
mod tail;
mod variance;
mod verdict;
mod view;
mod world_agreement;

use serde::Deserialize;

use crate::data::{Dataset, Filter};
use crate::figures::StackView;
use hol_lab::Metric;

pub use finding::Finding;
pub use kind::ClaimKind;
pub use omission::Omission;
pub use verdict::Verdict;
pub use view::{ComparedWith, View, compare, compare_times};

/// The contents of `claims.toml`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyClaims {
    /// The bibliographic reference of the publication; empty if the study repeats none.
    #[serde(default)]
    pub publication: String,
    /// The question of the paper, one sentence.
    pub question: String,
    /// The comparisons that answer the question, one sentence each.
    #[serde(rename = "answer", default)]
    pub answers: Vec<SummaryComparison>,
    /// Checks that show which variants agree with the paper; a variant is a value of a setting that the paper does not
    /// state. The first check selects variants, the others test them.
    #[serde(rename = "trial", default)]
    pub trials: Vec<SideCheck>,
    /// Every claim, in the paper's order.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// A comparison at one point for the summary.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryComparison {
    /// The beginning of the sentence: `At 1 % loss`.
    #[serde(rename = "when")]
    pub condition: String,
    /// The label of the transport, without the suffix of the stack.
    pub transport: String,
    /// The label of the transport with which it is compared.
    #[serde(rename = "than")]
    pub reference: String,
    /// The point at which the transports are compared.
    pub at: Filter,
    /// The metric that is compared.
    #[serde(default)]
    pub metric: Metric,
    /// The largest difference that counts as zero, in the unit of the metric.
    #[serde(default)]
    pub margin: f64,
}

/// A statement of the paper, and how it is checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Identifier of the claim, such as `ikr53-18`.
    pub id: String,
    /// The paper's words, shortened.
    pub quote: String,
    /// The interpretation that is checked, if the quote has several.
    pub reading: Option<String>,
    /// The kind of claim; only findings of the paper count.
    pub kind: ClaimKind,
    /// The result that would refute the claim, as text.
    pub refuted_by: String,
    /// What a reader has to know about the verdict: a substitute, an interpretation of the paper, the reason for a change.
    pub note: Option<String>,
    /// What would decide the claim if the measured points do not, with the command that measures it.
    pub undecided: Option<String>,
    /// Points of the same transports and experiments that no check uses, each with the reason.
    #[serde(default)]
    pub left_out: Vec<Omission>,
    /// The checks; all of them have to hold.
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
    /// Checks that are reported with the claim if measured, without influence on the verdict.
    #[serde(rename = "beside", default)]
    pub side_checks: Vec<SideCheck>,
}

/// A check that is reported with a claim and does not decide it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideCheck {
    /// A description of what is compared.
    #[serde(rename = "what")]
    pub description: String,
    /// The check.
    pub check: Check,
}

/// A check of a claim.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Check {
    /// A transport is faster than another: its times are lower, or its throughput is higher.
    Faster(comparison::FasterTransport),
    /// Two transports' means differ.
    Differ(comparison::DifferentMeans),
    /// Two transports' means are equivalent.
    Same(equivalence::EquivalentTransports),
    /// Two workloads' means and distributions are equivalent.
    SameWorkloads(equivalence::EquivalentWorkloads),
    /// Means lie within the paper's axis.
    Inside(axis_bounds::WithinAxis),
    /// A transport has a multiple of another's value.
    Ratio(ratio::MetricRatio),
    /// A transport has the values that a report states.
    Reported(reported_values::ReportedValues),
    /// A transport meets a requirement at more points than another.
    Area(area::LargerRegion),
    /// The throughput is as high as the link rate allows.
    Ceiling(ceiling::CeilingThroughput),
    /// The throughput drops at one value of an axis.
    Dip(dip::ThroughputDip),
    /// Means are the round-trip time plus a small amount.
    Floor(floor::MeansNearRtt),
    /// Means only fall, or only rise, along an axis.
    Monotone(order::MonotoneMeans),
    /// Quantiles are ordered by transport.
    QuantileOrder(order::QuantileOrder),
    /// A small number of streams is as good as many.
    EnoughStreams(stream_count::EnoughStreams),
    /// A fraction of the transactions takes far longer than the mean.
    Tail(tail::TailShare),
    /// The order of two transports changes at some rate.
    Crossover(crossover::CrossoverClaim),
    /// The response time consists of round trip, recovery, resequencing, and little else.
    Explained(delay_components::DelayComponents),
    /// At least this number of transactions was measured.
    Samples(measurement_scale::MinimumSamples),
    /// The load is carried up to a rate.
    Sustained(measurement_scale::SustainedLoad),
    /// Runs that fell behind schedule were aborted.
    Aborts(measurement_scale::AbortedRuns),
    /// No measurement is aborted.
    Completes(measurement_scale::CompletedRuns),
    /// Every transport has points.
    Covers(measurement_scale::Coverage),
    /// Every message used the stream that it should, and no stream delivered messages out of order.
    Streams(streams::StreamAssignment),
    /// No message waits for a message of another file.
    Blocking(blocking::HeadOfLineCheck),
    /// Our own code is shorter over SCTP.
    Lines(line_counts::FewerCodeLines),
    /// A swept key matters more than the choice of transport.
    MattersMore(variance::FactorEffect),
    /// Confidence intervals are wider, as a share of the mean, than at other axis values.
    WiderInterval(interval_width::WiderIntervals),
    /// Connecting takes too long.
    ConnectsLate(connect_time::LateConnects),
    /// A product of numbers has the value that the paper states.
    Product(paper_text::StatedProduct),
    /// All runs, one after the other, take at most a given time.
    Lasts(paper_text::TotalDuration),
    /// The paper's text alone decides the claim.
    Reading(paper_text::Interpretation),
    /// The model and the kernel agree, point by point.
    WorldsAgree(world_agreement::WorldAgreement),
    /// The claim cannot be decided in this world.
    NotHere(NotMeasurable),
}

/// A claim about something that cannot be measured here.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotMeasurable {
    /// What would be needed to decide the claim.
    reason: String,
}

/// A claim with its verdict and results.
#[derive(Debug, Clone)]
pub struct JudgedClaim {
    /// The claim.
    pub claim: Claim,
    /// The verdict, which follows from the results.
    pub verdict: Verdict,
    /// The result on each stack, with the stack's title.
    pub findings: Vec<(String, Finding)>,
}

impl JudgedClaim {
    /// Returns whether the claim compares numbers of a report with measured ones; its findings then have a row for each
    /// number.
    pub fn compares_numbers(&self) -> bool {
        self.claim.checks.iter().any(|check| matches!(check, Check::Reported(_)))
    }

    /// Describes with which settings of the paper's time the claim holds, is refuted or is undecided; `None` if the
    /// result is the same with all settings, or if there is only one.
    pub fn settings(&self) -> Option<String> {
        let period = self.findings.get(1..).filter(|period| period.len() > 1)?;
        let of = |holds: Option<bool>| -> Vec<&str> {
            period
                .iter()
                .filter(|(_, finding)| finding.holds == holds)
                .map(|(title, _)| title.as_str())
                .collect()
        };
        let parts: Vec<String> =
            [("holds with", Some(true)), ("is refuted with", Some(false)), ("is undecided with", None)]
                .into_iter()
                .filter(|(_, holds)| !of(*holds).is_empty())
                .map(|(word, holds)| format!("{word} {}", of(holds).join(" or ")))
                .collect();
        (parts.len() > 1).then(|| parts.join("; "))
    }
}

/// Judges every claim on every stack, the current one first; `absent` are the stacks that this world does not have.
pub fn judge(
    study: &StudyClaims,
    views: &[StackView],
    absent: &[StackView],
    data: &Dataset,
) -> Vec<JudgedClaim> {
    let data = &*data.with_all_options();
    let on = |claim: &Claim, stack| {
        let view = View { data, stack };
        let finding = Finding::combine(claim.checks.iter().map(|check| check.evaluate(&view)));
        let finding = match &claim.undecided {
            Some(what) if finding.holds.is_none() => Finding { text: what.clone(), ..finding },
            _ => finding,
        };
        let finding = Finding { left_out: claim.describe_omissions(&view), ..finding };
        let side_findings =
            claim.side_checks.iter().map(|side| (side.description.as_str(), side.check.evaluate(&view)));
        side_findings
            .fold(finding, |finding, (description, other)| finding.with_side_check(description, other))
    };
    let judged = |claim: &Claim| {
        // A check that does not depend on the stack is evaluated once.
        let once = claim.checks.iter().all(Check::names_its_stacks);
        let views = if once { &views[..views.len().min(1)] } else { views };
        let absent = if once { &[][..] } else { absent };
        let mut findings: Vec<_> =
            views.iter().map(|stack| (stack.title.clone(), on(claim, stack))).collect();
        // Settings on which this claim's experiments do not depend are not measured, and have no finding.
        if findings.len() > 2 && findings[1..].iter().any(|(_, finding)| !finding.has_no_points()) {
            let mut at = 0;
            findings.retain(|(_, finding)| {
                at += 1;
                at == 1 || !finding.has_no_points()
            });
        }
        let verdict = Verdict::of(&findings, absent.is_empty());
        let missing = |stack: &StackView| (stack.title.clone(), Finding::unknown(MODEL_ONLY));
        findings.extend(absent.iter().map(missing));
        JudgedClaim { claim: claim.clone(), verdict, findings }
    };
    study.claims.iter().map(judged).collect()
}

/// The text for a stack that this world does not have.
const MODEL_ONLY: &str = "only the model world has the stack of the paper's time";

impl Check {
    /// Returns whether the check names its stacks itself, or needs none.
    const fn names_its_stacks(&self) -> bool {
        matches!(
            self,
            Self::Differ(_)
                | Self::Streams(_)
                | Self::Blocking(_)
                | Self::Lines(_)
                | Self::Product(_)
                | Self::Reading(_)
                | Self::WorldsAgree(_)
                | Self::NotHere(_)
        )
    }

    /// Evaluates the check on one stack or variant.
    pub(crate) fn evaluate(&self, view: &View<'_>) -> Finding {
        match self {
            Self::Faster(check) => check.evaluate(view),
            Self::Differ(check) => check.evaluate(view),
            Self::Same(check) => check.evaluate(view),
            Self::SameWorkloads(check) => check.evaluate(view),
            Self::Inside(check) => check.evaluate(view),
            Self::Ratio(check) => check.evaluate(view),
            Self::Reported(check) => check.evaluate(view),
            Self::Area(check) => check.evaluate(view),
            Self::Ceiling(check) => check.evaluate(view),
            Self::Dip(check) => check.evaluate(view),
            Self::Floor(check) => check.evaluate(view),
            Self::Monotone(check) => check.evaluate(view),
            Self::QuantileOrder(check) => check.evaluate(view),
            Self::EnoughStreams(check) => check.evaluate(view),
            Self::Tail(check) => check.evaluate(view),
            Self::Crossover(check) => check.evaluate(view),
            Self::Explained(check) => check.evaluate(view),
            Self::Samples(check) => check.evaluate(view),
            Self::Sustained(check) => check.evaluate(view),
            Self::Aborts(check) => check.evaluate(view),
            Self::Completes(check) => check.evaluate(view),
            Self::Covers(check) => check.evaluate(view),
            Self::Streams(check) => check.evaluate(),
            Self::Blocking(check) => check.evaluate(),
            Self::Lines(check) => check.evaluate(),
            Self::MattersMore(check) => check.evaluate(view),
            Self::WiderInterval(check) => check.evaluate(view),
            Self::ConnectsLate(check) => check.evaluate(view),
            Self::Product(check) => check.evaluate(),
            Self::Lasts(check) => check.evaluate(view),
            Self::Reading(check) => check.evaluate(),
            Self::WorldsAgree(check) => check.evaluate(view),
            Self::NotHere(check) => Finding::unknown(check.reason.clone()),
        }
    }
}
