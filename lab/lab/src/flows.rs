//! What a point says of its flows as a whole: throughput, how they share it, and how long they took to connect.

use hol_measure::{CONFIDENCE, Interval, jain};

use crate::results::PointResult;
use crate::run_result::RunResult;

impl PointResult {
    /// Octets of completed requests over the time from the first message sent to the last delivered, in kbit/s, with
    /// its 95 % interval over the repetitions that did not end early; `None` if nothing completed.
    pub fn throughput_kbps(&self) -> Option<Interval> {
        self.over_runs(throughput)
    }

    /// Completed messages over the same time, a second.
    pub fn messages_per_s(&self) -> Option<Interval> {
        self.over_runs(|run| per_second(run, run.summary.completed).filter(|_| run.stopped.is_none()))
    }

    /// The throughput of each repetition in kbit/s; `None` where it ended early: what it delivered says nothing of its speed.
    pub fn throughputs(&self) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| throughput(run)).collect()
    }

    /// How long each repetition took to connect, in ms; `None` where it was not connected in time.
    pub fn connect_times_ms(&self) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| run.connect_time.map(|time| time.as_millis_f64())).collect()
    }

    /// What a flow of the background got meanwhile, in kbit/s: the mean of all; `None` without competitors.
    pub fn background_kbps(&self) -> Option<Interval> {
        self.over_runs(|run| {
            let shares = self.shares(run)?;
            let octets: u64 = shares.iter().sum();
            kbps(run, octets).map(|all| all / shares.len() as f64)
        })
    }

    /// Jain's index of what the workload and each flow of the background got; `None` without competitors.
    pub fn fairness(&self) -> Option<Interval> {
        self.over_runs(|run| self.fairness_of(run))
    }

    /// Jain's index of each repetition; `None` without competitors.
    pub fn fairnesses(&self) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| self.fairness_of(run)).collect()
    }

    fn fairness_of(&self, run: &RunResult) -> Option<f64> {
        let shares = self.shares(run)?.into_iter().chain([run.summary.bytes]);
        jain(&shares.map(|octets| octets as f64).collect::<Vec<_>>())
    }

    /// Octets that each flow of the background got meanwhile, if there are competitors among them.
    fn shares(&self, run: &RunResult) -> Option<Vec<u64>> {
        let shares = run.background.iter().map(|share| share.octets);
        (self.point.competitors() > 0).then(|| shares.collect())
    }

    /// From the workload's start until it was connected, in ms; `None` if no run was.
    pub fn connect_ms(&self) -> Option<Interval> {
        self.over_runs(|run| run.connect_time.map(|time| time.as_millis_f64()))
    }

    /// Runs whose workload was never connected, or not in time.
    pub fn unconnected(&self) -> usize {
        self.runs.iter().filter(|run| run.connect_time.is_none()).count()
    }

    fn over_runs(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Interval> {
        Interval::of(&self.runs.iter().filter_map(|run| value(run)).collect::<Vec<_>>(), CONFIDENCE)
    }
}

/// What a run carried; a transport that may lose messages is measured by those that arrived.
fn throughput(run: &RunResult) -> Option<f64> {
    kbps(run, run.summary.bytes).filter(|_| run.stopped.is_none())
}

fn kbps(run: &RunResult, octets: u64) -> Option<f64> {
    per_second(run, octets).map(|rate| rate * 8.0 / 1e3)
}

fn per_second(run: &RunResult, count: u64) -> Option<f64> {
    (!run.span.is_zero()).then(|| count as f64 / run.span.as_secs_f64())
}
