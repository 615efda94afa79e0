//! Metrics of a point's flows: throughput, its share between flows, and connect times.

use hol_measure::Interval;

use crate::background::Background;
use crate::point_result::PointResult;
use crate::run_result::RunResult;

impl PointResult {
    /// Returns the rate of completed messages, per second.
    pub fn messages_per_s(&self) -> Option<Interval> {
        self.interval_over_runs(|run| {
            per_second(run, run.summary.completed).filter(|_| run.stop_reason.is_none())
        })
    }

    /// Returns the mean throughput of a background flow during the measured flow, in kbit/s; `None` if no background
    /// flow lasts as long as the measured flow.
    pub fn background_kbps(&self) -> Option<Interval> {
        self.interval_over_runs(|run| {
            let shares = self.shares(run)?;
            let octets: u64 = shares.iter().sum();
            kbps(run, octets).map(|all| all / shares.len() as f64)
        })
    }

    /// Returns each background entry with the throughput of its flows during the measured flow, in kbit/s.
    pub fn throughput_of_background(&self) -> impl Iterator<Item = (&Background, Option<Interval>)> {
        let mut next = 0;
        self.point.background.iter().map(move |background| {
            let flows = next..next + usize::from(background.count);
            next = flows.end;
            let octets = |run: &RunResult| {
                Some(run.background.get(flows.clone())?.iter().map(|flow| flow.octets).sum::<u64>())
            };
            (background, self.interval_over_runs(|run| kbps(run, octets(run)?)))
        })
    }

    /// Returns how many octets each background flow delivered during the measured flow; `None` if no background
    /// flow lasts as long as the measured flow.
    fn shares(&self, run: &RunResult) -> Option<Vec<u64>> {
        let shares = run.background.iter().map(|share| share.octets);
        (self.point.competing_flow_count() > 0).then(|| shares.collect())
    }

    /// Returns the number of runs whose workload did not connect in time.
    pub fn unconnected_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.connect_time.is_none()).count()
    }
}

/// Returns the throughput of completed requests in kbit/s, from the first message sent to the last message
/// delivered. `None` if the run ended early, because its deliveries are then not representative.
pub(crate) fn throughput(run: &RunResult) -> Option<f64> {
    kbps(run, run.summary.bytes).filter(|_| run.stop_reason.is_none())
}

fn kbps(run: &RunResult, octets: u64) -> Option<f64> {
    per_second(run, octets).map(|rate| rate * 8.0 / 1e3)
}

fn per_second(run: &RunResult, count: u64) -> Option<f64> {
    (!run.span.is_zero()).then(|| count as f64 / run.span.as_secs_f64())
}
