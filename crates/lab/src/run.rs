//! One run in its world, and what is kept of it.

use std::panic::catch_unwind;

use hol_base::Duration;
use hol_kernel::{BackgroundFacts, Facts};
use hol_measure::{Record, Summary, Transfer, summarize};
use hol_model::{BackgroundRun, Run, Stopped};
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
    /// From the first message sent to the last delivered.
    pub span: Duration,
    /// From the workload's start until it was connected; `None` if it never was.
    #[serde(default)]
    pub connect_time: Option<Duration>,
    /// What became of each flow of the background.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<Share>,
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

/// What became of a flow of the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Octets that it delivered during the run's `span`.
    pub octets: u64,
    /// From its start until it was connected; `None` if it never was.
    pub connect_time: Option<Duration>,
    /// Why it ended before the workload, if it did.
    pub stopped: Option<String>,
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

/// Runs `job`: the result, and the records by flow. The first flow is the one that is measured, then comes the background.
pub(crate) fn run(job: Job<'_>) -> Result<(RunResult, Vec<Vec<Record>>), LabError> {
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
        connect_time: run.connect_time,
        background: run.background.iter().map(Share::of).collect(),
        packets: run.packets,
        counts: Counts::of(&run),
        stopped: run.stopped.reason(),
        wall_s,
        kernel: None,
    };
    let background = run.background.into_iter().map(|flow| flow.records);
    Ok((result, [run.records].into_iter().chain(background).collect()))
}

/// Runs `job` in the kernel world.
fn in_kernel(job: Job<'_>, release: &str) -> Result<(RunResult, Vec<Vec<Record>>), LabError> {
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
        connect_time: run.facts.connected.map(Duration::from_nanos),
        background: run.facts.background.iter().map(Share::of_kernel).collect(),
        packets: run.facts.packets,
        counts: Counts::default(),
        stopped: run.facts.stopped.clone(),
        wall_s: watch.seconds(),
        kernel: Some(Box::new(run.facts)),
    };
    Ok((result, [run.records].into_iter().chain(run.background).collect()))
}

fn span(records: &[Record]) -> Duration {
    Transfer::of(records).map_or(Duration::ZERO, |transfer| transfer.span())
}

impl Share {
    fn of(run: &BackgroundRun) -> Self {
        let BackgroundRun { connect_time, octets, stopped, .. } = *run;
        Self { octets, connect_time, stopped: stopped.and_then(Stopped::reason) }
    }

    fn of_kernel(facts: &BackgroundFacts) -> Self {
        let BackgroundFacts { connected, octets, stopped } = facts.clone();
        Self { octets, connect_time: connected.map(Duration::from_nanos), stopped }
    }
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
        use hol_base::Time;
        use hol_measure::{Leg, Outcome};
        let end = Time::from_millis(ms);
        let leg = Leg { arrived: end, delivered: end, ..Leg::default() };
        let (scheduled, outcome) = (Time::ZERO, Outcome::Completed);
        let record =
            Record { id: 0, kind: RecordKind::Message, parent: None, stream: 0, size: 56, scheduled, request: Some(leg), reply: None, outcome };
        let (span, counts) = (span(&[record]), Counts::default());
        Self {
            key,
            summary: summarize(&[record]),
            span,
            connect_time: Some(Duration::ZERO),
            background: Vec::new(),
            packets: 2,
            counts,
            stopped: None,
            wall_s: 0.0,
            kernel: None,
        }
    }
}
