//! What points are judged and drawn by.

use hol_measure::{CONFIDENCE, Interval};
use serde::Deserialize;

use crate::closed_form;
use crate::data::Cell;

/// One number for each repetition of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The mean response time, in ms.
    #[default]
    ResponseTime,
    /// User data from the first message sent to the last delivered, in kbit/s.
    Throughput,
    /// How long it took to connect, in ms.
    ConnectTime,
    /// Jain's index of the workload and each flow of the background.
    Fairness,
}

impl Metric {
    /// The value of each repetition; `None` where it has no honest one.
    pub fn of_runs(self, cell: &Cell) -> Vec<Option<f64>> {
        let flows = || cell.flows.as_ref();
        match self {
            // A point whose runs lost messages for good has no honest mean, for the missing ones are the slowest.
            Self::ResponseTime if cell.stopped.is_some() => Vec::new(),
            Self::ResponseTime => cell.means().unwrap_or_default().into_iter().map(Some).collect(),
            Self::Throughput => flows().map(|flows| flows.throughputs.clone()).unwrap_or_default(),
            Self::ConnectTime => flows().map(|flows| flows.connects.clone()).unwrap_or_default(),
            Self::Fairness => flows().map(|flows| flows.fairnesses.clone()).unwrap_or_default(),
        }
    }

    /// The mean over the repetitions; `None` where none has a value.
    pub fn mean(self, cell: &Cell) -> Option<Interval> {
        Interval::of(&self.of_runs(cell).into_iter().flatten().collect::<Vec<_>>(), CONFIDENCE)
    }

    /// What the closed form says; `None` where it does not apply.
    pub fn closed_form(self, cell: &Cell) -> Option<f64> {
        match self {
            Self::ResponseTime => closed_form::mean(cell),
            Self::Throughput => cell.flows.as_ref()?.ceiling_kbps,
            Self::ConnectTime | Self::Fairness => None,
        }
    }

    /// Its unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ResponseTime | Self::ConnectTime => "ms",
            Self::Throughput => "kbit/s",
            Self::Fairness => "of 1",
        }
    }

    /// What an axis calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResponseTime => "mean response time",
            Self::Throughput => "throughput",
            Self::ConnectTime => "time to connect",
            Self::Fairness => "Jain's fairness index",
        }
    }

    /// What the first of two is if it gains, and if it loses.
    pub const fn comparatives(self) -> [&'static str; 2] {
        match self {
            Self::Fairness => ["fairer", "less fair"],
            _ => ["faster", "slower"],
        }
    }

    /// How much faster (fairer) the first of two is, given what it has more.
    pub fn gain(self, difference: f64) -> f64 {
        match self {
            Self::ResponseTime | Self::ConnectTime => -difference,
            Self::Throughput | Self::Fairness => difference,
        }
    }
}
