//! The values of a run that a user sees, and a comparison of the values of two runs.

use hol_base::Duration;
use hol_measure::{Record, RecordKind, summarize};
use hol_scenario::Run;
use serde::{Deserialize, Serialize};

/// The values of one run that are compared between worlds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunValues {
    /// Median latency, in ms; `None` if fewer than half of the messages were delivered.
    pub median_ms: Option<f64>,
    /// The 99th percentile of the latency, in ms; `None` if fewer than 99 % of the messages were delivered.
    pub p99_ms: Option<f64>,
    /// Throughput in kbit/s, until the last message was delivered, lost or abandoned.
    pub throughput_kbps: f64,
    /// Number of messages that were not delivered.
    pub failed: u64,
}

impl RunValues {
    /// Computes the values of a run from its records of kind `kind`.
    pub fn of(run: &Run, kind: RecordKind) -> Self {
        let records: Vec<Record> = run.records.iter().filter(|record| record.kind == kind).copied().collect();
        let summary = summarize(&records);
        let ms = |p| summary.latency.quantile(p).map(Duration::as_millis_f64);
        let seconds = run.ended.as_secs_f64();
        let throughput_kbps = if seconds > 0.0 { summary.bytes as f64 * 8.0 / 1e3 / seconds } else { 0.0 };
        let failed = summary.offered - summary.completed;
        Self { median_ms: ms(0.5), p99_ms: ms(0.99), throughput_kbps, failed }
    }

    /// Returns whether the values of two runs without randomness agree. The tolerances are 3 % or 0.5 ms for
    /// medians, 5 % or 1 ms for 99th percentiles, and 3 % for throughputs. The numbers of failed messages must be
    /// equal.
    pub fn agrees_with(&self, other: &Self) -> bool {
        agree_within(self.median_ms, other.median_ms, 0.03, 0.5)
            && agree_within(self.p99_ms, other.p99_ms, 0.05, 1.0)
            && agree_within(Some(self.throughput_kbps), Some(other.throughput_kbps), 0.03, 0.0)
            && self.failed == other.failed
    }
}

fn agree_within(first: Option<f64>, second: Option<f64>, share: f64, min: f64) -> bool {
    match (first, second) {
        (None, None) => true,
        (Some(a), Some(b)) => (a - b).abs() <= (share * a.max(b)).max(min),
        _ => false,
    }
}
