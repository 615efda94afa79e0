//! Metrics that an experiment names: numbers that programs tell.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use hol_scenario::{Better, Reading};

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
}

/// The values of one in the repetitions of a point.
#[derive(Debug, Clone, PartialEq)]
pub struct ToldValues {
    /// Which.
    pub told: Told,
    /// `None` where the program told none.
    pub values: Vec<Option<f64>>,
}

impl Told {
    /// The metric of this name.
    pub fn new(name: &str, reading: &Reading) -> Self {
        Self {
            name: kept(name),
            unit: kept(&reading.unit),
            is_time: reading.is_time(),
            better: reading.better,
        }
    }

    /// What the first of two is if it gains, and if it loses: of a time faster or slower.
    pub(crate) const fn comparatives(self) -> [&'static str; 2] {
        match self.better {
            Better::Less if self.is_time => ["faster", "slower"],
            Better::Less => ["better (less)", "worse (more)"],
            Better::More => ["better (more)", "worse (less)"],
        }
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
