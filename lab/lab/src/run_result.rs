//! The stored result of a run.

use std::collections::BTreeMap;

use hol_base::{Duration, Time};
use hol_measure::{Outage, OutageCurve, RecordKind, Summary, Timeline, Waterfall, nanoseconds};
use hol_network::Drops;
use hol_scenario::{BackgroundRun, RunEnd, RunSummary, WorldReport};
use hol_transport::Statistics;
use serde::{Deserialize, Serialize};

use crate::point::RunKey;
use crate::run_observer::RecordSummaries;

/// The stored result of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunResult {
    /// The point and repetition.
    #[serde(flatten)]
    pub key: RunKey,
    /// The position in the trace at which the run began, if it was drawn from the run's seed.
    #[serde(
        default,
        rename = "trace_start_ns",
        skip_serializing_if = "Option::is_none",
        with = "nanoseconds::optional"
    )]
    pub trace_start: Option<Duration>,
    /// Summary, with a digest, of the records by which the workload is measured, such as messages or pages.
    pub summary: Summary,
    /// Summaries of the classes of message sizes, in the order of the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Summary>,
    /// The summaries of the other kinds of records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other: BTreeMap<RecordKind, Summary>,
    /// The time from when the first message was sent until the last one was delivered.
    #[serde(rename = "span_ns", with = "nanoseconds")]
    pub span: Duration,
    /// Deliveries over time, if the experiment requests a timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Effect of each disruption of the path, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Response times around the first disruption; only of the first repetition.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "course")]
    pub outage_curve: Option<Box<OutageCurve>>,
    /// Time since the start of the run at which the transport reported to the application that the connection had
    /// failed; `None` if it did not.
    #[serde(
        default,
        rename = "failed_at_ns",
        skip_serializing_if = "Option::is_none",
        with = "nanoseconds::optional"
    )]
    pub failed_at: Option<Duration>,
    /// Waterfall of one page, file by file, if this is the first repetition and the workload loads pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waterfall: Option<Box<Waterfall>>,
    /// Time from the workload's start until it was connected; `None` if it never was.
    #[serde(rename = "connect_time_ns", with = "nanoseconds::optional")]
    pub connect_time: Option<Duration>,
    /// The result of each background flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundFlowResult>,
    /// Number of packets that the hosts sent.
    pub packets: u64,
    /// Number of packets that did not arrive; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_lost: Option<u64>,
    /// Number of times that a queue set a packet's ECN field to CE; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets_marked: Option<u64>,
    /// The counters of both endpoints, added up; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<EndpointCounters>,
    /// Why the run ended early, if it did.
    #[serde(rename = "stopped")]
    pub stop_reason: Option<String>,
    /// The wall-clock time of the run, in seconds.
    pub wall_s: f64,
    /// Whether the records contain when the first packet of a message was sent and when the last one arrived, so that the delay can be
    /// decomposed.
    #[serde(rename = "sees_passage")]
    pub has_delivery_times: bool,
    /// Measurements that the model world does not report, but other worlds do.
    #[serde(default, rename = "facts", skip_serializing_if = "Option::is_none")]
    pub world_report: Option<Box<WorldReport>>,
}

/// The result of a background flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundFlowResult {
    /// Number of octets delivered between the first message that the measured flow sent and the last one that it
    /// delivered.
    pub octets: u64,
    /// Time from the flow's start until it was connected; `None` if it never was.
    #[serde(rename = "connect_time_ns", with = "nanoseconds::optional")]
    pub connect_time: Option<Duration>,
    /// Why the flow ended before the workload, if it did.
    #[serde(rename = "stopped")]
    pub stop_reason: Option<String>,
}

/// The counters of both endpoints, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndpointCounters {
    /// Number of data segments or DATA chunks retransmitted before a timeout.
    pub fast_retransmissions: u64,
    /// Number of data segments or DATA chunks retransmitted after a timeout.
    pub timeout_retransmissions: u64,
    /// Number of expiries of the retransmission timer.
    pub timeouts: u64,
    /// Number of timeouts of TCP and SCTP that follow another timeout without an acknowledgement in between. `None` in
    /// results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoffs: Option<u64>,
    /// Number of tail loss probes sent.
    pub tail_loss_probes: u64,
    /// Number of reductions of ssthresh.
    pub congestion_events: u64,
    /// Number of data segments or DATA chunks that arrived more than once.
    pub duplicates: u64,
}

impl RunResult {
    /// Returns the value of the metric `name` that a program reported; `None` if the run ended early.
    pub fn program_metric(&self, name: &str) -> Option<f64> {
        let programs = &self.world_report.as_ref().filter(|_| self.stop_reason.is_none())?.programs;
        programs.iter().find_map(|program| program.metrics.get(name)).copied()
    }

    /// Returns the longest time without a delivery around a disruption, in ms. `None` if there was no
    /// disruption, or if nothing was delivered after one.
    pub fn outage_ms(&self) -> Option<f64> {
        let longest = self.outages.iter().map(|outage| outage.longest).max()?;
        self.has_recovered().then(|| longest.as_millis_f64())
    }

    /// Returns whether something was delivered after each disruption.
    pub fn has_recovered(&self) -> bool {
        self.outages.iter().all(|outage| outage.is_over)
    }

    /// Creates the result of a run that took `wall_s` seconds from its outcome and the summaries of its
    /// records.
    pub(crate) fn of(key: RunKey, run: RunSummary, summaries: RecordSummaries, wall_s: f64) -> Self {
        let RecordSummaries { summary, span, timeline, outages, outage_curve, classes, other, waterfall } =
            summaries;
        let is_drawn = key.repetition == 0 && !outages.is_empty();
        let has_failed = matches!(run.run_end, RunEnd::Failed { .. });
        Self {
            outages,
            trace_start: None,
            outage_curve: is_drawn.then(|| Box::new(outage_curve)),
            failed_at: has_failed.then(|| run.ended.since(Time::ZERO)),
            key,
            summary,
            classes,
            other,
            span,
            timeline,
            waterfall: waterfall.map(Box::new),
            connect_time: run.connect_time,
            background: run.background.iter().map(BackgroundFlowResult::of).collect(),
            packets: run.packets,
            packets_lost: run.drops.map(Drops::total),
            packets_marked: run.marked.filter(|marked| *marked > 0),
            counts: run.endpoints.as_ref().map(EndpointCounters::of),
            stop_reason: run.run_end.reason(),
            wall_s,
            has_delivery_times: run.has_delivery_times,
            world_report: run.world_report,
        }
    }
}

impl BackgroundFlowResult {
    fn of(run: &BackgroundRun) -> Self {
        let stop_reason = run.run_end.as_ref().and_then(RunEnd::reason);
        Self { octets: run.octets, connect_time: run.connect_time, stop_reason }
    }
}

impl EndpointCounters {
    fn of([client, server]: &[Statistics; 2]) -> Self {
        let both = |count: fn(&Statistics) -> u64| count(client) + count(server);
        Self {
            fast_retransmissions: both(|s| s.fast_retransmissions),
            timeout_retransmissions: both(|s| s.timeout_retransmissions),
            timeouts: both(|s| s.timeouts),
            backoffs: Some(both(|s| s.backoffs)),
            tail_loss_probes: both(|s| s.tail_loss_probes),
            congestion_events: both(|s| s.congestion_events),
            duplicates: both(|s| s.duplicates_received),
        }
    }
}

#[cfg(test)]
impl RunResult {
    /// Returns the result of a run with one message whose response time is `ms` milliseconds.
    pub(crate) fn with_mean(key: RunKey, ms: u64) -> Self {
        use hol_base::Time;
        use hol_measure::{Outcome, Record, TransferTimes, summarize};
        let end = Time::from_millis(ms);
        let leg = TransferTimes { arrived: end, delivered: end, ..TransferTimes::default() };
        let (scheduled, outcome) = (Time::ZERO, Outcome::Completed);
        let record = Record {
            id: 0,
            kind: RecordKind::Message,
            parent: None,
            stream: 0,
            size: 56,
            reply_size: 0,
            scheduled,
            request: Some(leg),
            reply: None,
            outcome,
        };
        Self {
            key,
            trace_start: None,
            summary: summarize(&[record]),
            classes: Vec::new(),
            other: BTreeMap::new(),
            span: end.since(Time::ZERO),
            timeline: None,
            outages: Vec::new(),
            outage_curve: None,
            failed_at: None,
            waterfall: None,
            connect_time: Some(Duration::ZERO),
            background: Vec::new(),
            packets: 2,
            packets_lost: None,
            packets_marked: None,
            counts: None,
            stop_reason: None,
            wall_s: 0.0,
            has_delivery_times: true,
            world_report: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::PointId;

    #[test]
    fn sums_beyond_64_bits_are_kept() {
        let mut run = RunResult::with_mean(RunKey { point: PointId(7), repetition: 0 }, 20);
        run.summary.split.network = 1 << 70;
        let line = serde_json::to_string(&run).expect("a run can be serialised");
        let read: RunResult = serde_json::from_str(&line).expect("the line is a run");
        assert_eq!(read.summary, run.summary);
    }
}
