//! What a point says of its flows as a whole: throughput, how they share it, and how long they took to connect.

use hol_measure::Interval;

use crate::results::PointResult;
use crate::run_result::RunResult;

impl PointResult {
    /// Completed messages over the same time, a second.
    pub fn messages_per_s(&self) -> Option<Interval> {
        self.over_runs(|run| per_second(run, run.summary.completed).filter(|_| run.stopped.is_none()))
    }

    /// What a flow of the background got meanwhile, in kbit/s: the mean of all; `None` without competitors.
    pub fn background_kbps(&self) -> Option<Interval> {
        self.over_runs(|run| {
            let shares = self.shares(run)?;
            let octets: u64 = shares.iter().sum();
            kbps(run, octets).map(|all| all / shares.len() as f64)
        })
    }

    /// Octets that each flow of the background got meanwhile, if there are competitors among them.
    fn shares(&self, run: &RunResult) -> Option<Vec<u64>> {
        let shares = run.background.iter().map(|share| share.octets);
        (self.point.competitors() > 0).then(|| shares.collect())
    }

    /// Runs whose workload was never connected, or not in time.
    pub fn unconnected(&self) -> usize {
        self.runs.iter().filter(|run| run.connect_time.is_none()).count()
    }
}

/// Octets of completed requests over the time from the first message sent to the last delivered, in kbit/s; `None` if the run
/// ended early: what it delivered says nothing of its speed.
pub(crate) fn throughput(run: &RunResult) -> Option<f64> {
    kbps(run, run.summary.bytes).filter(|_| run.stopped.is_none())
}

fn kbps(run: &RunResult, octets: u64) -> Option<f64> {
    per_second(run, octets).map(|rate| rate * 8.0 / 1e3)
}

fn per_second(run: &RunResult, count: u64) -> Option<f64> {
    (!run.span.is_zero()).then(|| count as f64 / run.span.as_secs_f64())
}
