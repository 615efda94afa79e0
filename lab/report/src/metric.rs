//! What points are judged and drawn by.

use hol_base::Duration;
use hol_measure::{Bounds, CONFIDENCE, Distribution, Interval, Playback, Recorder, Summary, Timeline};
use hol_scenario::Better;
use serde::Deserialize;
use serde::de::IntoDeserializer;

use crate::closed_form;
use crate::data::Cell;
use crate::told::Told;

/// One number for each repetition of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The mean response time, in ms.
    #[default]
    ResponseTime,
    /// The response time that one message in a hundred exceeds, in ms.
    Tail,
    /// User data from the first message sent to the last delivered, in kbit/s.
    Throughput,
    /// How long it took to connect, in ms.
    ConnectTime,
    /// Jain's index of the workload and each flow of the background.
    Fairness,
    /// The share of the messages that arrived, in percent.
    Delivered,
    /// How long the first octets of a page took, in ms.
    FirstOctets,
    /// The mean time of an object of a page, in ms, from when it is known until it is here; or of a request of a batch.
    ObjectTime,
    /// Packets that did not arrive, for each message that did.
    PacketsLost,
    /// The share of the frames of a medium that could be played, in percent.
    Playable,
    /// Runs of frames that could not, in a minute.
    Glitches,
    /// What a program tells, in its own unit.
    #[serde(skip)]
    Told(Told),
}

impl Metric {
    /// The metric that an experiment file calls so.
    pub fn named(name: &str) -> Option<Self> {
        let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }

    /// The value of each repetition; `None` where it has no honest one.
    pub fn of_runs(self, cell: &Cell) -> Vec<Option<f64>> {
        let flows = || cell.flows.as_ref();
        match self {
            // Where a longer run would take another time, or most runs did not carry the load, no time is that of the point.
            Self::ResponseTime | Self::Tail if !cell.steady || !cell.mostly_ended() => Vec::new(),
            Self::ResponseTime => cell.of_ended(|run| run.latency.mean_ms()),
            Self::Tail => cell.of_ended(|run| run.latency.quantile(0.99).map(|at| at.as_millis_f64())),
            Self::Throughput => flows().map(|flows| flows.throughputs.clone()).unwrap_or_default(),
            Self::ConnectTime => flows().map(|flows| flows.connects.clone()).unwrap_or_default(),
            Self::Fairness => flows().map(|flows| flows.fairnesses.clone()).unwrap_or_default(),
            Self::FirstOctets => cell.first_octets.clone(),
            Self::ObjectTime => cell.objects.clone(),
            Self::PacketsLost => cell.packets_lost.clone(),
            Self::Playable => of_playback(cell, |playback| Some(playback.playable_percent())),
            Self::Glitches => of_playback(cell, Playback::glitches_per_minute),
            Self::Told(told) => {
                let own = cell.told.iter().find(|own| own.told == told);
                own.map(|own| own.values.clone()).unwrap_or_default()
            }
            Self::Delivered => {
                let share = |run: &Summary| 100.0 * run.completed as f64 / run.offered as f64;
                cell.runs.iter().map(share).map(Some).collect()
            }
        }
    }

    /// The mean over the repetitions; `None` where none has a value.
    pub fn mean(self, cell: &Cell) -> Option<Interval> {
        Interval::of(&self.of_runs(cell).into_iter().flatten().collect::<Vec<_>>(), CONFIDENCE)
    }

    /// The mean over the repetitions with an interval that follows their shape; `None` where none has a value.
    pub fn shaped_mean(self, cell: &Cell) -> Option<Bounds> {
        Bounds::of_mean(&self.of_runs(cell).into_iter().flatten().collect::<Vec<_>>(), CONFIDENCE)
    }

    /// The value of each repetition in each part of their time that none of them ended before, with the seconds in its middle;
    /// empty where nothing is kept of it.
    pub fn over_time(self, cell: &Cell) -> Vec<(f64, Vec<f64>)> {
        let value = match self {
            Self::ResponseTime => Timeline::mean_ms,
            Self::Throughput => Timeline::kbps,
            _ => return Vec::new(),
        };
        let Some(first) = cell.timelines.first() else { return Vec::new() };
        let parts = cell.timelines.iter().map(|timeline| timeline.parts.len()).min().unwrap_or(0);
        let at = |part| cell.timelines.iter().filter_map(|timeline| value(timeline, part)).collect();
        (0..parts).map(|part| (first.middle_s(part), at(part))).collect()
    }

    /// The median over the repetitions; one without a value is worse than all others.
    pub fn median(self, cell: &Cell) -> Option<Bounds> {
        let values: Vec<f64> =
            self.of_runs(cell).into_iter().map(|value| value.unwrap_or(self.worst())).collect();
        Bounds::of_median(&values, CONFIDENCE).filter(|median| median.value.is_finite())
    }

    /// What stands for a repetition without a value where only the order counts.
    pub const fn worst(self) -> f64 {
        match self {
            Self::ResponseTime
            | Self::Tail
            | Self::ConnectTime
            | Self::FirstOctets
            | Self::ObjectTime
            | Self::PacketsLost
            | Self::Glitches
            | Self::Told(Told { better: Better::Less, .. }) => f64::INFINITY,
            Self::Throughput | Self::Delivered | Self::Fairness | Self::Playable | Self::Told(_) => {
                f64::NEG_INFINITY
            }
        }
    }

    /// How many repetitions have no value: a mean is over the others only.
    pub fn missing(self, cell: &Cell) -> usize {
        self.of_runs(cell).iter().filter(|value| value.is_none()).count()
    }

    /// How many repetitions did not do what they were to do: carry their load, or have a value at all.
    pub fn collapsed(self, cell: &Cell) -> usize {
        if self.needs_load() { cell.collapsed() } else { self.missing(cell) }
    }

    /// What [`Metric::collapsed`] counts, in words.
    pub const fn collapse(self) -> &'static str {
        if self.needs_load() {
            "some runs collapsed: ended early, or fell behind"
        } else {
            "some runs have no value"
        }
    }

    /// Whether it says little where the load was not carried. A throughput is what was carried instead.
    const fn needs_load(self) -> bool {
        matches!(self, Self::ResponseTime | Self::Tail | Self::Delivered)
    }

    /// Why a point has no mean, in a few words.
    pub fn why_none(self, cell: &Cell) -> &'static str {
        if !cell.mostly_ended() {
            "most runs ended early"
        } else if cell.steady {
            "no run has a value"
        } else {
            "no steady state"
        }
    }

    /// The distribution of a time: over all messages, or over all repetitions where each connects but once.
    pub fn distribution(self, cell: &Cell) -> Distribution {
        match self {
            Self::ResponseTime | Self::Tail => cell.latency.clone(),
            Self::Throughput
            | Self::Delivered
            | Self::Fairness
            | Self::PacketsLost
            | Self::Playable
            | Self::Glitches
            | Self::Told(_) => Distribution::default(),
            Self::ConnectTime | Self::FirstOctets | Self::ObjectTime => {
                let mut recorder = Recorder::new();
                for value in self.of_runs(cell) {
                    match value {
                        Some(ms) => recorder.complete(Duration::from_secs_f64(ms / 1000.0)),
                        None => recorder.miss(),
                    }
                }
                recorder.finish()
            }
        }
    }

    /// What the closed form says; `None` where it does not apply.
    pub fn closed_form(self, cell: &Cell) -> Option<f64> {
        match self {
            Self::ResponseTime => closed_form::mean(cell),
            Self::Throughput => cell.flows.as_ref()?.ceiling_kbps,
            _ => None,
        }
    }

    /// What the closed form is, if there is one.
    pub const fn theory(self) -> Option<&'static str> {
        match self {
            Self::ResponseTime => Some("the closed form, where it applies"),
            Self::Throughput => Some("the most that the line carries with the headers of this transport"),
            _ => None,
        }
    }

    /// Its unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ResponseTime | Self::Tail | Self::ConnectTime | Self::FirstOctets | Self::ObjectTime => {
                "ms"
            }
            Self::PacketsLost => "packets",
            Self::Throughput => "kbit/s",
            Self::Fairness => "of 1",
            Self::Delivered | Self::Playable => "%",
            Self::Glitches => "/min",
            Self::Told(told) => told.unit,
        }
    }

    /// What an axis calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResponseTime => "mean response time",
            Self::Tail => "99th percentile",
            Self::Throughput => "throughput",
            Self::ConnectTime => "time to connect",
            Self::Fairness => "Jain's fairness index",
            Self::Delivered => "messages delivered",
            Self::FirstOctets => "time to the first octets",
            Self::ObjectTime => "mean time of an object or request",
            Self::PacketsLost => "packets lost, each time",
            Self::Playable => "playable frames",
            Self::Glitches => "glitches",
            Self::Told(told) => told.name,
        }
    }

    /// The most that it can be, if there is such a value.
    pub const fn most(self) -> Option<f64> {
        match self {
            Self::Fairness => Some(1.0),
            Self::Delivered | Self::Playable => Some(100.0),
            _ => None,
        }
    }

    /// What an axis of its means is called.
    pub fn axis(self) -> String {
        match self {
            Self::Fairness => format!("{} (1: all get the same)", self.name()),
            _ if self.unit().is_empty() => self.name().to_owned(),
            _ => format!("{} ({})", self.name(), self.unit()),
        }
    }

    /// What the axis of its distribution is called.
    pub const fn time_axis(self) -> &'static str {
        match self {
            Self::ConnectTime => "time to connect (ms)",
            Self::FirstOctets => "time to the first octets (ms)",
            Self::ObjectTime => "time of an object or request (ms)",
            _ => "response time (ms)",
        }
    }

    /// What the share above a time is called.
    pub const fn share_axis(self) -> &'static str {
        match self {
            Self::ConnectTime | Self::FirstOctets | Self::ObjectTime => "share of runs that took longer",
            _ => "share of messages that took longer",
        }
    }

    /// What the first of two is if it gains, and if it loses.
    pub const fn comparatives(self) -> [&'static str; 2] {
        match self {
            Self::Fairness => ["fairer", "less fair"],
            Self::Delivered => ["more complete", "less complete"],
            Self::PacketsLost => ["fewer packets lost", "more packets lost"],
            Self::Playable => ["more playable", "less playable"],
            Self::Glitches => ["fewer glitches", "more glitches"],
            Self::Told(told) => told.comparatives,
            _ => ["faster", "slower"],
        }
    }

    /// What two are that are equal.
    pub const fn equal(self) -> &'static str {
        match self {
            Self::Fairness => "as fair",
            Self::Delivered => "as complete",
            Self::PacketsLost => "as many packets lost",
            Self::Playable => "as playable",
            Self::Glitches => "as many glitches",
            Self::Told(told) => told.equal(),
            _ => "as fast",
        }
    }

    /// The largest difference that counts as none, in its unit: time is in whole nanoseconds.
    pub const fn resolution(self) -> f64 {
        match self {
            Self::ResponseTime | Self::Tail | Self::ConnectTime | Self::FirstOctets | Self::ObjectTime => {
                1e-6
            }
            Self::Throughput
            | Self::Delivered
            | Self::Fairness
            | Self::PacketsLost
            | Self::Playable
            | Self::Glitches
            | Self::Told(_) => 0.0,
        }
    }

    /// How much faster (fairer) the first of two is, given what it has more.
    pub fn gain(self, difference: f64) -> f64 {
        match self {
            Self::ResponseTime
            | Self::Tail
            | Self::ConnectTime
            | Self::FirstOctets
            | Self::ObjectTime
            | Self::PacketsLost
            | Self::Glitches
            | Self::Told(Told { better: Better::Less, .. }) => -difference,
            Self::Throughput | Self::Delivered | Self::Fairness | Self::Playable | Self::Told(_) => {
                difference
            }
        }
    }
}

/// The value of each repetition that has played something.
fn of_playback(cell: &Cell, value: impl Fn(&Playback) -> Option<f64>) -> Vec<Option<f64>> {
    let of = |run: &Summary| run.playback.as_ref().map(&value);
    cell.runs.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, flow};

    #[test]
    fn what_an_experiment_may_ask_for_is_a_metric() {
        for name in hol_lab::METRICS {
            assert!(Metric::named(name).is_some(), "{name}");
        }
        assert_eq!(
            (Metric::named(hol_lab::METRICS[0]), Metric::named("speed")),
            (Some(Metric::default()), None)
        );
    }

    #[test]
    fn a_run_that_did_not_end_is_in_no_mean_but_counted() {
        let mut cell = flow("TCP", &[], &[100.0, 110.0, 120.0], 385.0);
        cell.flows.as_mut().unwrap().throughputs[2] = None;
        let mean = Metric::Throughput.mean(&cell).unwrap();
        assert_eq!((mean.mean, mean.n, Metric::Throughput.missing(&cell)), (105.0, 2, 1));
    }

    #[test]
    fn few_runs_that_end_early_are_in_no_mean_and_most_of_them_leave_none() {
        let mut cell = cell("SCTP-8", 1.0, 100.0, &[21.0, 21.2, 900.0]);
        (cell.stopped, cell.early) = (Some("behind schedule".to_owned()), vec![false, false, true]);
        let mean = Metric::ResponseTime.mean(&cell).unwrap();
        assert!((mean.mean - 21.1).abs() < 1e-9 && mean.n == 2, "{mean:?}");
        assert_eq!((Metric::ResponseTime.missing(&cell), cell.collapsed()), (1, 1));
        assert_eq!(Metric::ResponseTime.median(&cell).unwrap().value, 21.2);
        cell.early = vec![false, true, true];
        assert_eq!(Metric::ResponseTime.mean(&cell), None);
    }

    #[test]
    fn without_a_steady_state_there_is_no_mean_and_no_tail() {
        let mut cell = cell("SCTP-8", 0.0, 10_000.0, &[56.9; 10]);
        cell.steady = false;
        assert_eq!([Metric::ResponseTime, Metric::Tail].map(|metric| metric.mean(&cell)), [None; 2]);
        assert_eq!((cell.means(), cell.why_no_mean().is_some()), (None, true));
    }

    #[test]
    fn a_run_that_never_connects_takes_longer_than_any_time() {
        let mut cell = flow("TCP", &[], &[100.0, 110.0], 385.0);
        cell.flows.as_mut().unwrap().connects = vec![Some(50.0), None];
        let connects = Metric::ConnectTime.distribution(&cell);
        assert_eq!((connects.offered(), connects.share_above(Duration::from_secs(60))), (2, Some(0.5)));
    }
}
