//! One scenario in two worlds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hol_lab::{InputError, Point};
use hol_measure::{RankSum, quantile};
use hol_scenario::{Run, RunError, World};

use crate::drawn::Drawn;
use crate::trace::{Difference, Trace};
use crate::values::Values;

/// Runs of a scenario that chance has a part in, in the first and in the second world.
const RUNS: [u32; 2] = [20, 6];
/// Ranks as uneven as this by chance alone, once in so many scenarios …
const SURE: f64 = 0.005;
/// … and medians that are further apart than this share, or by so many ms: a difference.
const FAR: (f64, f64) = (0.05, 0.5);

/// How two worlds compare.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// They send the same packets at the same times.
    SamePackets,
    /// They send other packets, or at other times, and say the same.
    SameValues(Box<Difference>),
    /// Chance has a part in it, and neither is faster.
    SameRanks,
    /// They say otherwise; where chance has no part in it, with the first packet in which they differ.
    Differ(Option<Box<Difference>>),
    /// One of them cannot do it: why.
    Refused(String),
    /// A run failed: why.
    Failed(String),
}

impl Verdict {
    /// Whether the worlds agree in what they say.
    pub fn agrees(&self) -> bool {
        matches!(self, Self::SamePackets | Self::SameValues(_) | Self::SameRanks)
    }

    /// Whether both worlds ran it.
    pub fn is_judged(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::Failed(_))
    }

    /// The first packet that differs.
    pub fn difference(&self) -> Option<&Difference> {
        match self {
            Self::SameValues(difference) | Self::Differ(Some(difference)) => Some(difference),
            _ => None,
        }
    }
}

/// A scenario, and how it came out.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The scenario.
    pub drawn: Drawn,
    /// How the worlds compare.
    pub verdict: Verdict,
    /// What they say, where they ran it: of one run each, or the medians of several.
    pub values: Option<[Values; 2]>,
}

/// Runs a scenario in both worlds and compares them: by its packets where chance has no part in it, else by the ranks of several runs.
pub fn compare(drawn: &Drawn, first: &dyn World, second: &dyn World) -> Comparison {
    // An assertion that fails is a finding like any other, and the comparison goes on.
    let judged = catch_unwind(AssertUnwindSafe(|| judge(drawn, first, second)));
    let (verdict, values) = match judged {
        Ok(Ok((verdict, values))) => (verdict, Some(values)),
        Ok(Err(RunError::Refused(problem))) => (Verdict::Refused(problem), None),
        Ok(Err(problem)) => (Verdict::Failed(problem.to_string()), None),
        Err(_) => (Verdict::Failed("an assertion failed, see above".to_owned()), None),
    };
    Comparison { drawn: drawn.clone(), verdict, values }
}

fn judge(drawn: &Drawn, first: &dyn World, second: &dyn World) -> Result<(Verdict, [Values; 2]), RunError> {
    let refused = |problem: InputError| RunError::Refused(problem.to_string());
    let (first_point, point) = (drawn.first_point().map_err(refused)?, drawn.point().map_err(refused)?);
    let scenario = point.scenario(0);
    first.check(&scenario)?;
    second.check(&scenario)?;
    let (run, mut trace) = traced(&first_point, first, 0)?;
    if drawn.names_chance() || run.digest() != traced(&first_point, first, 1)?.0.digest() {
        return by_ranks([(&first_point, first), (&point, second)]);
    }
    let (other_run, mut other) = traced(&point, second, 0)?;
    let end = run.ended.min(other_run.ended);
    trace.end(end);
    other.end(end);
    let kind = scenario.workload.record_kind();
    let values = [Values::of(&run, kind), Values::of(&other_run, kind)];
    let agree = values[0].agree(&values[1]);
    let verdict = match trace.first_difference(&other).map(Box::new) {
        None if agree => Verdict::SamePackets,
        Some(difference) if agree => Verdict::SameValues(difference),
        difference => Verdict::Differ(difference),
    };
    Ok((verdict, values))
}

/// What the hosts of a point's first repetition send until its last message is settled.
pub fn trace(point: &Point, world: &dyn World) -> Result<Trace, RunError> {
    let (run, mut trace) = traced(point, world, 0)?;
    trace.end(run.ended);
    Ok(trace)
}

/// A repetition with all that its hosts send.
fn traced(point: &Point, world: &dyn World, repetition: u32) -> Result<(Run, Trace), RunError> {
    let mut trace = Trace::default();
    let run = world.trace(&point.scenario(repetition), point.seed_of(repetition), &mut trace)?;
    Ok((run, trace))
}

fn by_ranks([first, second]: [(&Point, &dyn World); 2]) -> Result<(Verdict, [Values; 2]), RunError> {
    let runs = |(point, world): (&Point, &dyn World), count: u32| -> Result<Vec<Values>, RunError> {
        let run = |repetition| world.run(&point.scenario(repetition), point.seed_of(repetition));
        let kind = point.workload.record_kind();
        (0..count).map(|repetition| run(repetition).map(|run| Values::of(&run, kind))).collect()
    };
    let values = [runs(first, RUNS[0])?, runs(second, RUNS[1])?];
    let metrics: [fn(&Values) -> f64; 4] = [
        |values| values.median_ms.unwrap_or(f64::INFINITY),
        |values| values.p99_ms.unwrap_or(f64::INFINITY),
        |values| values.throughput_kbps,
        |values| values.failed as f64,
    ];
    let differs = metrics.iter().any(|metric| {
        let [a, b] = values.each_ref().map(|values| values.iter().map(metric).collect::<Vec<f64>>());
        let [low, high] = [median(&a), median(&b)];
        let is_far = (low - high).abs() > (FAR.0 * low.max(high)).max(FAR.1);
        is_far && RankSum::of(&a, &b).p < SURE
    });
    let verdict = if differs { Verdict::Differ(None) } else { Verdict::SameRanks };
    Ok((verdict, values.map(|values| middle(&values))))
}

/// The median of each value.
fn middle(runs: &[Values]) -> Values {
    let of = |metric: fn(&Values) -> f64| median(&runs.iter().map(metric).collect::<Vec<f64>>());
    let finite = |value: f64| value.is_finite().then_some(value);
    Values {
        median_ms: finite(of(|values| values.median_ms.unwrap_or(f64::INFINITY))),
        p99_ms: finite(of(|values| values.p99_ms.unwrap_or(f64::INFINITY))),
        throughput_kbps: of(|values| values.throughput_kbps),
        failed: of(|values| values.failed as f64) as u64,
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5).unwrap_or_default()
}
