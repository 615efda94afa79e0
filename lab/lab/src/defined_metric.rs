//! Metrics that an experiment defines: numbers reported by programs.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use hol_scenario::{Better, MetricReader};

/// A metric that an experiment defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinedMetric {
    /// Name of the metric.
    pub name: &'static str,
    /// Unit of the metric; empty if it has none.
    pub unit: &'static str,
    /// Whether the metric is a time.
    pub is_time: bool,
    /// Whether a larger or a smaller value is better.
    pub better: Better,
    /// The words for the first of two values: if it is better, and if it is worse. For a time these are "faster"
    /// and "slower".
    pub(crate) comparatives: [&'static str; 2],
}

impl DefinedMetric {
    /// Creates a metric with this name.
    pub fn new(name: &str, reading: &MetricReader) -> Self {
        let comparatives = match reading.is_time() {
            true => ["faster", "slower"],
            false => ["better", "worse"].map(|word| interned(&format!("{word} in {name}"))),
        };
        let (unit, is_time, better) = (interned(&reading.unit), reading.is_time(), reading.better);
        Self { name: interned(name), unit, is_time, better, comparatives }
    }

    /// Returns the word for the comparison of two equal values, such as "as fast as".
    pub(crate) const fn word_for_equal(self) -> &'static str {
        if self.is_time { "as fast" } else { "as good" }
    }
}

/// Returns a copy of the text that is never freed, because `Metric` is `Copy`. There are few such texts.
fn interned(text: &str) -> &'static str {
    static INTERNED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = interned.get(text) {
        return known;
    }
    let new: &'static str = Box::leak(text.into());
    interned.insert(new);
    new
}
