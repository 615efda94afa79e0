//! The daemon's counters and gauges, and their text for Prometheus.

mod histogram;
mod process;
mod text;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hol_base::Duration;
use hol_simco::{Body, Change, ExhaustedResource, Refusal, Request, Usage};

use crate::port_mapping::Answers;
pub(crate) use histogram::Histogram;
pub(crate) use text::MIME_TYPE;

/// The metrics of a daemon: written by the event loop, read by the [endpoint](crate::metrics_endpoint).
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics(Arc<Mutex<MetricValues>>);

impl Metrics {
    /// Locks the metrics for access.
    pub fn lock(&self) -> MutexGuard<'_, MetricValues> {
        // Counters are consistent at any time, even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all metrics as text for Prometheus.
    pub fn text(&self) -> String {
        let numbers = self.lock().clone();
        text::format_numbers(&numbers)
    }
}

/// Counters increase from the start of the daemon; gauges are current values.
#[derive(Debug, Clone)]
pub(crate) struct MetricValues {
    /// Requests about rules, by type and by the sub-type of a negative reply.
    requests: BTreeMap<(&'static str, Option<u8>), u64>,
    /// Refused sessions, by the sub-type of the negative reply.
    pub refused_sessions: BTreeMap<u8, u64>,
    /// Failed TLS handshakes.
    pub refused_handshakes: u64,
    /// Requests refused because a quota or a resource is exhausted.
    pub shortages: BTreeMap<&'static str, u64>,
    /// Open connections.
    pub connections: u64,
    /// Accepted connections.
    pub accepted: u64,
    /// Rules in the table.
    pub rules: u64,
    /// The resources that each agent uses, by the agent's name.
    pub usage: BTreeMap<String, Usage>,
    /// Ports that the NAT can assign for each protocol.
    pub ports: u64,
    /// Mappings by PCP and NAT-PMP.
    pub mappings: u64,
    /// Answers to requests for mappings, by operation and result.
    pub mapping_answers: Answers,
    /// The number of standbys that have every rule: 0 or 1.
    pub standbys: u64,
    /// Octets from agents.
    pub received: u64,
    /// Octets to agents.
    pub sent: u64,
    /// Changes per batch.
    pub batches: Histogram,
    /// Time of the packet filter per batch, in nanoseconds.
    pub filter: Histogram,
    /// Time of the journal per batch, in nanoseconds.
    pub journal: Histogram,
    /// Batches that could not be applied as a whole.
    pub failures: u64,
    /// Log lines dropped because the reader was too slow.
    pub dropped_lines: u64,
    /// Time of turns, in nanoseconds.
    pub turns: Histogram,
    /// Cost of turns, in units of about a nanosecond.
    pub work: Histogram,
    /// Maximum cost of a turn.
    pub max_work: u64,
}

impl Default for MetricValues {
    fn default() -> Self {
        Self {
            requests: BTreeMap::new(),
            refused_sessions: BTreeMap::new(),
            refused_handshakes: 0,
            shortages: BTreeMap::new(),
            connections: 0,
            accepted: 0,
            rules: 0,
            usage: BTreeMap::new(),
            ports: 0,
            mappings: 0,
            mapping_answers: Answers::new(),
            standbys: 0,
            received: 0,
            sent: 0,
            batches: Histogram::of_sizes(),
            filter: Histogram::of_times(),
            journal: Histogram::of_times(),
            failures: 0,
            dropped_lines: 0,
            turns: Histogram::of_times(),
            work: Histogram::of_times(),
            max_work: 0,
        }
    }
}

impl MetricValues {
    /// Counts a session that was refused.
    pub fn count_refused_session(&mut self, refusal: Refusal) {
        *self.refused_sessions.entry(refusal.code()).or_default() += 1;
    }

    /// Counts a request beyond a limit.
    pub fn count_shortage(&mut self, shortage: ExhaustedResource) {
        *self.shortages.entry(shortage.name()).or_default() += 1;
    }

    /// Counts a turn in the class of its duration.
    pub fn count_turn(&mut self, time: Duration) {
        self.turns.count(time.as_nanos());
    }

    /// Counts the cost of a turn.
    pub fn count_work(&mut self, work: u64) {
        self.work.count(work);
        self.max_work = self.max_work.max(work);
    }

    /// Counts a request by its answer.
    pub fn count_answer(&mut self, request: &Request, answer: &Body) {
        let refusal = if let Body::Refusal(refusal) = answer { Some(refusal.code()) } else { None };
        *self.requests.entry((name(request), refusal)).or_default() += 1;
    }

    /// Counts applied changes, and the times of the packet filter and of the journal.
    pub fn count_batch(&mut self, changes: &[Change], (filter, journal): (Duration, Duration)) {
        self.batches.count(changes.len() as u64);
        self.filter.count(filter.as_nanos());
        self.journal.count(journal.as_nanos());
        for change in changes {
            match (&change.before, &change.after) {
                (None, Some(_)) => self.rules += 1,
                (Some(_), None) => self.rules -= 1,
                _ => {}
            }
        }
    }
}

pub(crate) fn name(request: &Request) -> &'static str {
    match request {
        Request::Se { .. } => "SE",
        Request::Sa { .. } => "SA",
        Request::St => "ST",
        Request::Prr { .. } => "PRR",
        Request::Per { .. } => "PER",
        Request::Pea { .. } => "PEA",
        Request::Pdr { .. } => "PDR",
        Request::Plc { .. } => "PLC",
        Request::Prs { .. } => "PRS",
        Request::Prl => "PRL",
    }
}
