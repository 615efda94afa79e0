//! Claims of a paper, declared in its study's `claims.toml`, judged by code on the measured points.

mod area;
mod blocking;
mod bounds;
mod ceiling;
mod compare;
mod crossover;
mod dip;
mod enough;
mod explained;
mod finding;
mod floor;
mod kind;
mod late;
mod left_out;
mod lines;
mod matters;
mod order;
mod ratio;
mod same;
mod scale;
mod streams;
mod tail;
mod text;
mod verdict;
mod view;
mod wider;
#[cfg(test)]
mod worlds;
mod worlds_agree;

use serde::Deserialize;

use crate::data::{Dataset, Filter};
use crate::figures::StackView;
use hol_lab::Metric;

pub use finding::Finding;
pub use kind::Kind;
pub use left_out::LeftOut;
pub use verdict::Verdict;
pub use view::{Other, View, compare, compare_times};

/// The file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyClaims {
    /// What the paper asked, one sentence.
    pub question: String,
    /// The comparisons that answer it, one sentence each.
    #[serde(rename = "answer", default)]
    pub answers: Vec<Answer>,
    /// What tells between variants that the paper does not state: the first fits, the others test.
    #[serde(rename = "trial", default)]
    pub trials: Vec<Beside>,
    /// Every claim, in the paper's order.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// A comparison at one point that belongs into the summary.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// How the sentence begins: `At 1 % loss`.
    pub when: String,
    /// The transport, without the stack.
    pub transport: String,
    /// What it is compared with.
    pub than: String,
    /// The point.
    pub at: Filter,
    /// What is compared.
    #[serde(default)]
    pub metric: Metric,
    /// The largest difference that counts as none, in the unit of what is compared.
    #[serde(default)]
    pub margin: f64,
}

/// One statement of the paper and how it is checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name, such as `ikr53-18`.
    pub id: String,
    /// The paper's words, shortened.
    pub quote: String,
    /// Which of its meanings is checked, if it has several.
    pub reading: Option<String>,
    /// What it is a claim about; only findings of the paper are counted.
    pub kind: Kind,
    /// What would refute it, in words.
    pub refuted_by: String,
    /// What to know when reading the verdict: a substitution, a reading of the paper, why it flips.
    pub note: Option<String>,
    /// What would decide it, with the command, where the measured points do not.
    pub undecided: Option<String>,
    /// Points of the same transports and experiments that no check takes, each with the reason.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// The checks; all have to hold.
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
    /// What is told with it, where it was measured; the verdict does not depend on it.
    #[serde(default)]
    pub beside: Vec<Beside>,
}

/// A check that is told, and decides no claim.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// What is compared, in words.
    pub what: String,
    /// How.
    pub check: Check,
}

/// One way to check a claim.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Check {
    /// Means are lower than those of another transport.
    Faster(compare::Faster),
    /// Two transports' means differ.
    Differ(compare::Differ),
    /// Two transports' means are equivalent.
    Same(same::SameTransports),
    /// Two workloads' means and distributions are equivalent.
    SameWorkloads(same::SameWorkloads),
    /// Means lie within the paper's axis.
    Inside(bounds::Inside),
    /// A transport has so many times what another has.
    Ratio(ratio::Ratio),
    /// A transport is good enough at more points than another.
    Area(area::Area),
    /// Throughput is what the line carries.
    Ceiling(ceiling::Ceiling),
    /// Throughput falls at one place of an axis.
    Dip(dip::Dip),
    /// Means are the round-trip time and little more.
    Floor(floor::Floor),
    /// Means only fall, or only rise, along an axis.
    Monotone(order::Monotone),
    /// Quantiles are ordered by transport.
    QuantileOrder(order::QuantileOrder),
    /// A small number of streams is as good as many.
    EnoughStreams(enough::EnoughStreams),
    /// A share of the transactions takes far longer than the mean.
    Tail(tail::Tail),
    /// Two transports change places at some rate.
    Crossover(crossover::Crossing),
    /// The response time is round trip, recovery, resequencing and little else.
    Explained(explained::Explained),
    /// At least so many transactions were measured.
    Samples(scale::Samples),
    /// The load is carried up to a rate.
    Sustained(scale::Sustained),
    /// Runs behind schedule were given up.
    Aborts(scale::Aborts),
    /// No measurement is aborted.
    Completes(scale::Completes),
    /// Points exist.
    Covers(scale::Covers),
    /// Every message took the stream it should, and streams kept their order.
    Streams(streams::Streams),
    /// No message waits for another file's.
    Blocking(blocking::Blocking),
    /// Our own code is shorter over SCTP.
    Lines(lines::Lines),
    /// A swept key matters more than the choice of transport.
    MattersMore(matters::MattersMore),
    /// Repetitions differ more than elsewhere.
    WiderInterval(wider::WiderInterval),
    /// It takes too long to connect.
    ConnectsLate(late::ConnectsLate),
    /// A product of numbers is what the paper says.
    Product(text::Product),
    /// All runs one after the other take so long.
    Lasts(text::Lasts),
    /// The text alone tells.
    Reading(text::Reading),
    /// The model and the kernel agree, point by point.
    WorldsAgree(worlds_agree::WorldsAgree),
    /// Nothing that this world can tell.
    NotHere(NotHere),
}

/// A claim about something that is not here.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotHere {
    /// What would be needed.
    reason: String,
}

/// A claim with its verdict and the numbers behind it.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// What follows from the findings.
    pub verdict: Verdict,
    /// What each stack says: its title and its finding.
    pub findings: Vec<(String, Finding)>,
}

impl Judged {
    /// With which settings of the paper's time the claim holds, in words; `None` where all agree, or there is one.
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
            [("holds with", Some(true)), ("fails with", Some(false)), ("open with", None)]
                .into_iter()
                .filter(|(_, holds)| !of(*holds).is_empty())
                .map(|(word, holds)| format!("{word} {}", of(holds).join(" or ")))
                .collect();
        (parts.len() > 1).then(|| parts.join("; "))
    }
}

/// Judges every claim on every stack, today's first; `absent` are those that this world does not have.
pub fn judge(study: &StudyClaims, views: &[StackView], absent: &[StackView], data: &Dataset) -> Vec<Judged> {
    let on = |claim: &Claim, stack| {
        let view = View { data, stack };
        let finding = Finding::all(claim.checks.iter().map(|check| check.evaluate(&view)));
        let finding = match &claim.undecided {
            Some(what) if finding.holds.is_none() => Finding { text: what.clone(), ..finding },
            _ => finding,
        };
        let finding = Finding { left_out: claim.left_out_in_words(&view), ..finding };
        let beside = claim.beside.iter().map(|beside| (beside.what.as_str(), beside.check.evaluate(&view)));
        beside.fold(finding, |finding, (what, other)| finding.beside(what, other))
    };
    let judged = |claim: &Claim| {
        // What does not depend on the stack is asked once.
        let once = claim.checks.iter().all(Check::names_its_stacks);
        let views = if once { &views[..views.len().min(1)] } else { views };
        let absent = if once { &[][..] } else { absent };
        let mut findings: Vec<_> =
            views.iter().map(|stack| (stack.title.clone(), on(claim, stack))).collect();
        // A setting that this claim's experiments do not depend on is not measured there.
        if findings.len() > 2 && findings[1..].iter().any(|(_, finding)| !finding.is_of_no_points()) {
            let mut at = 0;
            findings.retain(|(_, finding)| {
                at += 1;
                at == 1 || !finding.is_of_no_points()
            });
        }
        let verdict = Verdict::of(&findings, absent.is_empty());
        let missing = |stack: &StackView| (stack.title.clone(), Finding::unknown(MODEL_ONLY));
        findings.extend(absent.iter().map(missing));
        Judged { claim: claim.clone(), verdict, findings }
    };
    study.claims.iter().map(judged).collect()
}

/// What is said of a stack that is not here.
const MODEL_ONLY: &str = "needs the stack of the paper's time: model world only";

impl Check {
    /// Whether it names its stacks itself, or needs none.
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

    /// What it says on one stack, or variant.
    pub(crate) fn evaluate(&self, view: &View<'_>) -> Finding {
        match self {
            Self::Faster(check) => check.evaluate(view),
            Self::Differ(check) => check.evaluate(view),
            Self::Same(check) => check.evaluate(view),
            Self::SameWorkloads(check) => check.evaluate(view),
            Self::Inside(check) => check.evaluate(view),
            Self::Ratio(check) => check.evaluate(view),
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
