//! What is kept of a run.

use std::collections::BTreeMap;

use hol_base::Duration;
use hol_measure::{Record, RecordKind, Summary, Transfer, summarize};
use hol_scenario::{BackgroundRun, Facts, Run, Stopped};
use hol_transport::Statistics;
use serde::{Deserialize, Serialize};

use crate::point::RunKey;

/// What is kept of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunResult {
    /// Which run.
    #[serde(flatten)]
    pub key: RunKey,
    /// What its records say, of the kind that the workload is about; the digest is here.
    pub summary: Summary,
    /// What its records of other kinds say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other: BTreeMap<RecordKind, Summary>,
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
    /// What both endpoints counted together, where they tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Why it ended, if not because everything was done.
    pub stopped: Option<String>,
    /// Wall-clock time inside the simulation, in seconds.
    pub wall_s: f64,
    /// Whether the records tell when a message left and when it arrived, so that the delay can be split.
    pub sees_passage: bool,
    /// What a world that is not ours tells of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<Facts>>,
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

impl RunResult {
    /// What is kept of `run`, whose workload is about records of this `kind`; it took `wall_s` seconds.
    pub(crate) fn of(key: RunKey, run: &Run, kind: RecordKind, wall_s: f64) -> Self {
        let mut by_kind = by_kind(&run.records);
        let (summary, span) = match by_kind.remove(&kind) {
            Some(records) => (summarize(&records), span(&records)),
            None => (summarize(&run.records), span(&run.records)),
        };
        Self {
            key,
            summary,
            other: by_kind.into_iter().map(|(kind, records)| (kind, summarize(&records))).collect(),
            span,
            connect_time: run.connect_time,
            background: run.background.iter().map(Share::of).collect(),
            packets: run.packets,
            counts: run.endpoints.as_ref().map(Counts::of),
            stopped: run.stopped.reason(),
            wall_s,
            sees_passage: run.sees_passage,
            facts: run.facts.clone(),
        }
    }
}

/// Records of several kinds apart; nothing if all are of one.
fn by_kind(records: &[Record]) -> BTreeMap<RecordKind, Vec<Record>> {
    let mut kinds: BTreeMap<RecordKind, Vec<Record>> = BTreeMap::new();
    if records.windows(2).all(|pair| pair[0].kind == pair[1].kind) {
        return kinds;
    }
    records.iter().for_each(|record| kinds.entry(record.kind).or_default().push(*record));
    kinds
}

fn span(records: &[Record]) -> Duration {
    Transfer::of(records).map_or(Duration::ZERO, |transfer| transfer.span())
}

impl Share {
    fn of(run: &BackgroundRun) -> Self {
        let stopped = run.stopped.as_ref().and_then(Stopped::reason);
        Self { octets: run.octets, connect_time: run.connect_time, stopped }
    }
}

impl Counts {
    fn of([client, server]: &[Statistics; 2]) -> Self {
        let both = |count: fn(&Statistics) -> u64| count(client) + count(server);
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
        use hol_measure::{Leg, Outcome, Record};
        let end = Time::from_millis(ms);
        let leg = Leg { arrived: end, delivered: end, ..Leg::default() };
        let (scheduled, outcome) = (Time::ZERO, Outcome::Completed);
        let record = Record {
            id: 0,
            kind: RecordKind::Message,
            parent: None,
            stream: 0,
            size: 56,
            scheduled,
            request: Some(leg),
            reply: None,
            outcome,
        };
        let (span, counts) = (span(&[record]), None);
        Self {
            key,
            summary: summarize(&[record]),
            other: BTreeMap::new(),
            span,
            connect_time: Some(Duration::ZERO),
            background: Vec::new(),
            packets: 2,
            counts,
            stopped: None,
            wall_s: 0.0,
            sees_passage: true,
            facts: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Time;
    use hol_measure::Outcome;

    #[test]
    fn kinds_are_summarised_apart() {
        let record = |id, kind, parent| Record {
            id,
            kind,
            parent,
            stream: 0,
            size: 100,
            scheduled: Time::ZERO,
            request: None,
            reply: None,
            outcome: Outcome::Unfinished,
        };
        let page = record(0, RecordKind::Page, None);
        let objects = [1, 2, 3].map(|id| record(id, RecordKind::Object, Some(0)));
        let kinds = by_kind(&[[page].as_slice(), &objects].concat());
        let counts: Vec<_> = kinds.iter().map(|(kind, records)| (kind.name(), records.len())).collect();
        assert_eq!(counts, [("object", 3), ("page", 1)]);
        assert!(by_kind(&objects).is_empty(), "one kind alone needs no copy");
    }
}
