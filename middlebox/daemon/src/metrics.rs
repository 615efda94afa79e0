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

/// The metrics of a daemon, which its event loop updates and its [endpoint](crate::metrics_endpoint) reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics(Arc<Mutex<MetricValues>>);

impl Metrics {
    /// Locks the metrics for access.
    pub fn lock(&self) -> MutexGuard<'_, MetricValues> {
        // Counters are consistent at any time, even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all metrics in Prometheus' text format.
    pub fn text(&self) -> String {
        let numbers = self.lock().clone();
        text::format_numbers(&numbers)
    }
}

/// The values of the metrics: counters count from the start of the daemon, gauges are current values.
#[derive(Debug, Clone)]
pub(crate) struct MetricValues {
    /// Number of requests about rules, by type and, for negative replies, by the sub-type of the reply.
    requests: BTreeMap<(&'static str, Option<u8>), u64>,
    /// Number of refused sessions, by the sub-type of the negative reply.
    pub refused_sessions: BTreeMap<u8, u64>,
    /// Number of failed TLS handshakes.
    pub refused_handshakes: u64,
    /// Number of requests refused because a quota or a resource was exhausted, by its name.
    pub shortages: BTreeMap<&'static str, u64>,
    /// Number of open connections.
    pub connections: u64,
    /// Number of connections accepted so far.
    pub accepted: u64,
    /// Number of rules.
    pub rules: u64,
    /// The resources that each agent uses, by the agent's name.
    pub usage: BTreeMap<String, Usage>,
    /// Number of ports that the NAT can assign, for each protocol.
    pub ports: u64,
    /// Number of port mappings granted with PCP and NAT-PMP.
    pub mappings: u64,
    /// Number of answers to requests for port mappings, by operation and result.
    pub mapping_answers: Answers,
    /// The number of standbys that have received every rule: 0 or 1.
    pub standbys: u64,
    /// Number of octets received from agents.
    pub received: u64,
    /// Number of octets sent to agents.
    pub sent: u64,
    /// Number of changes of rules per batch.
    pub batches: Histogram,
    /// Time that the packet filter needs per batch, in nanoseconds.
    pub filter: Histogram,
    /// Time that the journal needs per batch, in nanoseconds.
    pub journal: Histogram,
    /// Number of batches that could not be applied as a whole.
    pub failures: u64,
    /// Number of log lines dropped because their reader was too slow.
    pub dropped_lines: u64,
    /// Duration of turns of the event loop, in nanoseconds.
    pub turns: Histogram,
    /// Cost of turns of the event loop, in units of about a nanosecond of processor time.
    pub work: Histogram,
    /// Maximum cost of a turn of the event loop, in units of about a nanosecond of processor time.
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

    /// Counts a request that was refused because a quota or a resource was exhausted.
    pub fn count_shortage(&mut self, shortage: ExhaustedResource) {
        *self.shortages.entry(shortage.name()).or_default() += 1;
    }

    /// Counts a turn of the event loop by its duration.
    pub fn count_turn(&mut self, time: Duration) {
        self.turns.count(time.as_nanos());
    }

    /// Counts the cost of a turn of the event loop.
    pub fn count_work(&mut self, work: u64) {
        self.work.count(work);
        self.max_work = self.max_work.max(work);
    }

    /// Counts a request by its type and by its answer.
    pub fn count_answer(&mut self, request: &Request, answer: &Body) {
        let refusal = if let Body::Refusal(refusal) = answer { Some(refusal.code()) } else { None };
        *self.requests.entry((name(request), refusal)).or_default() += 1;
    }

    /// Counts a batch of applied changes, and the time that the packet filter and the journal needed for it.
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
