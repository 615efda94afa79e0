//! What the daemon has done and what it holds, in numbers, and those as text for Prometheus.

mod histogram;
mod text;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hol_base::Duration;
use hol_simco::{Body, Change, Refusal, Request, Shortage};

pub(crate) use histogram::Histogram;
pub(crate) use text::MIME;

/// The numbers of a daemon: the loop counts, the [endpoint](crate::endpoint) reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics(Arc<Mutex<Numbers>>);

impl Metrics {
    /// The numbers, to change or to read a few of them.
    pub fn numbers(&self) -> MutexGuard<'_, Numbers> {
        // Counters are whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, as Prometheus reads them.
    pub fn text(&self) -> String {
        let numbers = self.numbers().clone();
        text::of(&numbers)
    }
}

/// Counters go up from the start of the daemon; gauges are what is.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    /// Requests about rules, by type and by the sub-type of the negative reply, if that was it.
    requests: BTreeMap<(&'static str, Option<u8>), u64>,
    /// Sessions that were refused, by the sub-type of the negative reply.
    pub refused_sessions: BTreeMap<u8, u64>,
    /// TLS handshakes that came to nothing.
    pub refused_handshakes: u64,
    /// Requests that were refused because an agent has its quota, or all is taken.
    pub shortages: BTreeMap<&'static str, u64>,
    /// Connections that are open.
    pub connections: u64,
    /// Connections that were ever accepted.
    pub accepted: u64,
    /// Rules that are held.
    pub rules: u64,
    /// Octets from agents.
    pub received: u64,
    /// Octets to agents.
    pub sent: u64,
    /// Changes that were made at once.
    pub batches: Histogram,
    /// What the packet filter took for a batch, in nanoseconds.
    pub filter: Histogram,
    /// What the journal took.
    pub journal: Histogram,
    /// Batches that could not be made as a whole.
    pub failures: u64,
    /// What turns cost, in units of about a nanosecond.
    pub work: Histogram,
    /// What the turn cost that cost most.
    pub most_work: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            requests: BTreeMap::new(),
            refused_sessions: BTreeMap::new(),
            refused_handshakes: 0,
            shortages: BTreeMap::new(),
            connections: 0,
            accepted: 0,
            rules: 0,
            received: 0,
            sent: 0,
            batches: Histogram::of_sizes(),
            filter: Histogram::of_times(),
            journal: Histogram::of_times(),
            failures: 0,
            work: Histogram::of_times(),
            most_work: 0,
        }
    }
}

impl Numbers {
    /// A session was refused.
    pub fn count_refused_session(&mut self, refusal: Refusal) {
        *self.refused_sessions.entry(refusal.code()).or_default() += 1;
    }

    /// An agent wanted more than it may have.
    pub fn count_shortage(&mut self, shortage: Shortage) {
        *self.shortages.entry(shortage.name()).or_default() += 1;
    }

    /// A turn has cost so much.
    pub fn count_turn(&mut self, work: u64) {
        self.work.count(work);
        self.most_work = self.most_work.max(work);
    }

    /// A request was answered.
    pub fn count_answer(&mut self, request: &Request, answer: &Body) {
        let refusal = if let Body::Refusal(refusal) = answer { Some(refusal.code()) } else { None };
        *self.requests.entry((name(request), refusal)).or_default() += 1;
    }

    /// Changes have been made in one go, in so long by the packet filter and by the journal.
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
