//! One run in its world, and what is kept of it.

use std::panic::catch_unwind;

use hol_base::{Duration, Time};
use hol_kernel::Facts;
use hol_measure::{Record, Summary, summarize};
use hol_model::Run;
use hol_transport::Statistics;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::failed::FailedRun;
use crate::plan::Job;
use crate::point::RunKey;
use crate::stopwatch::Stopwatch;
use crate::world::{World, booted};

/// What is kept of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunResult {
    /// Which run.
    #[serde(flatten)]
    pub key: RunKey,
    /// What its records say; the digest is here.
    pub summary: Summary,
    /// From the first scheduled message to the last delivery.
    pub span: Duration,
    /// Packets that the hosts sent.
    pub packets: u64,
    /// What both endpoints counted together; nothing in the kernel world.
    pub counts: Counts,
    /// Why it ended, if not because everything was done.
    pub stopped: Option<String>,
    /// Wall-clock time inside the simulation, in seconds.
    pub wall_s: f64,
    /// In the kernel world: its version, its settings, and what it measured of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Box<Facts>>,
}

/// What both endpoints counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Data segments or DATA chunks sent again before a timeout.
    pub fast_retransmissions: u64,
    /// Data segments or DATA chunks sent again after a timeout.
    pub timeout_retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Tail loss probes.
    pub tail_loss_probes: u64,
    /// Reductions of ssthresh.
    pub congestion_events: u64,
    /// Data that arrived more than once.
    pub duplicates: u64,
}

/// Runs `job`: the result, and its records.
pub(crate) fn run(job: Job<'_>) -> Result<(RunResult, Vec<Record>), LabError> {
    let (point, repetition) = (job.point, job.repetition);
    if let World::Kernel(release) = &point.world {
        return in_kernel(job, release);
    }
    let watch = Stopwatch::start();
    let (scenario, seed) = (point.scenario(repetition), point.seed_of(repetition));
    let outcome = catch_unwind(|| hol_model::run(&scenario, seed, None));
    let run = outcome
        .map_err(|_| LabError::Broken { point: point.to_string(), repetition, seed: seed.0 })?
        .map_err(|e| LabError::Scenario { point: point.to_string(), problem: e.to_string() })?;
    let wall_s = watch.seconds();
    let result = RunResult {
        key: job.key(),
        summary: summarize(&run.records),
        span: span(&run.records),
        packets: run.packets,
        counts: Counts::of(&run),
        stopped: run.stopped.reason(),
        wall_s,
        kernel: None,
    };
    Ok((result, run.records))
}

/// Runs `job` in the kernel world.
fn in_kernel(job: Job<'_>, release: &str) -> Result<(RunResult, Vec<Record>), LabError> {
    let (point, repetition) = (job.point, job.repetition);
    let world = booted(release)?;
    let watch = Stopwatch::start();
    let run = world.run(&point.scenario(repetition), point.seed_of(repetition));
    let run = run.map_err(|problem| match problem.is_one_run() {
        true => LabError::Failed(FailedRun::new(job, &problem)),
        false => LabError::Kernel(problem),
    })?;
    let result = RunResult {
        key: job.key(),
        summary: summarize(&run.records),
        span: span(&run.records),
        packets: run.facts.packets,
        counts: Counts::default(),
        stopped: run.facts.stopped.clone(),
        wall_s: watch.seconds(),
        kernel: Some(Box::new(run.facts)),
    };
    Ok((result, run.records))
}

fn span(records: &[Record]) -> Duration {
    let first = records.iter().map(|r| r.scheduled).min().unwrap_or(Time::ZERO);
    let ends = records.iter().filter_map(|r| Some(r.scheduled + r.latency()?));
    ends.max().unwrap_or(first).since(first)
}

impl Counts {
    fn of(run: &Run) -> Self {
        let both = |count: fn(&Statistics) -> u64| count(&run.client) + count(&run.server);
        Self {
            fast_retransmissions: both(|s| s.fast_retransmissions),
            timeout_retransmissions: both(|s| s.timeout_retransmissions),
            timeouts: both(|s| s.timeouts),
            tail_loss_probes: both(|s| s.tail_loss_probes),
            congestion_events: both(|s| s.congestion_events),
            duplicates: both(|s| s.duplicates_received),
        }
    }
}

#[cfg(test)]
impl RunResult {
    /// A run of one message that took this many ms.
    pub(crate) fn with_mean(key: RunKey, ms: u64) -> Self {
        use hol_measure::{Leg, Outcome};
        let end = Time::from_millis(ms);
        let leg = Leg { arrived: end, delivered: end, ..Leg::default() };
        let (scheduled, outcome) = (Time::ZERO, Outcome::Completed);
        let record =
            Record { id: 0, stream: 0, size: 56, scheduled, request: Some(leg), reply: None, outcome };
        let (span, counts) = (span(&[record]), Counts::default());
        Self {
            key,
            summary: summarize(&[record]),
            span,
            packets: 2,
            counts,
            stopped: None,
            wall_s: 0.0,
            kernel: None,
        }
    }
}
