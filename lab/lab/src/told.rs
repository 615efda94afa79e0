//! Metrics that an experiment names: numbers that programs tell.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use hol_scenario::{Better, MetricReader};

/// A metric of the experiment's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty if it has none.
    pub unit: &'static str,
    /// Whether it is a time.
    pub is_time: bool,
    /// Which of two values is the better one.
    pub better: Better,
    /// What the first of two is if it gains, and if it loses: of a time faster or slower, else better or worse in this.
    pub(crate) comparatives: [&'static str; 2],
}

impl Told {
    /// The metric of this name.
    pub fn new(name: &str, reading: &MetricReader) -> Self {
        let comparatives = match reading.is_time() {
            true => ["faster", "slower"],
            false => ["better", "worse"].map(|word| kept(&format!("{word} in {name}"))),
        };
        let (unit, is_time, better) = (kept(&reading.unit), reading.is_time(), reading.better);
        Self { name: kept(name), unit, is_time, better, comparatives }
    }

    /// What two are that are equal.
    pub(crate) const fn equal(self) -> &'static str {
        if self.is_time { "as fast" } else { "as good" }
    }
}

/// The same text for as long as this program runs: experiments name few, and they stand wherever a metric does.
fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(text) {
        return known;
    }
    let new: &'static str = Box::leak(text.into());
    kept.insert(new);
    new
}
