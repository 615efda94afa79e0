//! What the report draws and judges: the points of a study, whoever measured them.

use std::collections::BTreeMap;

use hol_measure::{Distribution, Interval, RecordKind, SplitMean, Stalls, Summary, Timeline, Waterfall};

use crate::validation::Compared;
use hol_lab::Metric;

/// All points of all experiments.
#[derive(Debug, Clone, Default)]
pub struct Dataset {
    /// In the order of the experiments and their plans.
    pub cells: Vec<Cell>,
    /// The points that another world measured too, held against it; `None` where there is no other.
    pub compared: Option<Vec<Compared>>,
    /// Points that were planned and have no run: they failed, or the sweep did not come to them.
    pub unmeasured: Vec<Cell>,
}

/// One point: one transport under one set of conditions.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The experiment's name, such as `exp1`.
    pub experiment: String,
    /// The transport's label, such as `SCTP-8 (2006)`.
    pub transport: String,
    /// The transport's specification, such as `sctp:streams=8,stack=linux-2.6.16`.
    pub spec: String,
    /// What its runs count.
    pub kind: RecordKind,
    /// Streams (or connections) that messages are spread over.
    pub streams: u16,
    /// What the network and the workload were.
    pub conditions: Conditions,
    /// The repetitions, in their order: two points of an experiment met the same losses in the same repetition.
    pub runs: Vec<Summary>,
    /// What was delivered when in each of them; none where the experiment does not ask for it.
    pub timelines: Vec<Timeline>,
    /// Response times of all repetitions together.
    pub latency: Distribution,
    /// Where the time went, mean over the messages; `None` where sockets do not tell.
    pub split: Option<SplitMean>,
    /// Why a run ended early, if one did.
    pub stopped: Option<String>,
    /// Which of the runs ended early; none where it is empty.
    pub early: Vec<bool>,
    /// Whether longer runs would have the same mean response time, as far as these show it.
    pub steady: bool,
    /// The retransmission timeouts of all runs; `None` where there can be none, or nobody counts.
    pub stalls: Option<Stalls>,
    /// What its runs say beyond their summaries, by metric: those of the experiment's own, too.
    pub values: Vec<(Metric, Vec<Option<f64>>)>,
    /// Of pages: one of the first repetition, file by file.
    pub waterfall: Option<Waterfall>,
    /// Its flows as a whole, where messages go one way or there is a background.
    pub flows: Option<Flows>,
}

/// What is said of a point's flows as a whole, each number with its interval over the repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Flows {
    /// The point with its axes.
    pub point: String,
    /// The most that the path carries of it with the transport's headers, in kbit/s; `None` where there is no closed
    /// form.
    pub ceiling_kbps: Option<f64>,
    /// What a flow of the background got meanwhile, in kbit/s.
    pub background_kbps: Option<Interval>,
}

/// What differs between the points of an experiment, beside the transport.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions {
    /// Packet loss in each direction, in percent.
    pub loss: f64,
    /// Offered messages a second.
    pub rate: f64,
    /// One-way delay in ms.
    pub delay_ms: f64,
    /// The kind of workload and its message size, as in `echo 100B`.
    pub workload: String,
    /// Messages come at random (Poisson), not at equal distances.
    pub poisson: bool,
    /// One line, the same in both directions, that loses packets independently of each other and does nothing else to them, and
    /// carries the load with ease.
    pub plain: bool,
    /// The path itself changes during a run: by events or a trace.
    pub changes: bool,
    /// The swept keys with their values as written, in the order of the file.
    pub axes: Vec<(String, String)>,
}

/// Which points: an empty list or an absent range takes all.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Names of experiments.
    pub experiments: Vec<String>,
    /// Least and greatest loss in percent.
    pub loss: Option<[f64; 2]>,
    /// Least and greatest rate in 1/s.
    pub rate: Option<[f64; 2]>,
    /// One-way delay in ms.
    pub delay_ms: Option<f64>,
    /// The workload, as in `simco` or `echo 100B`.
    pub workload: Option<String>,
    /// Values of swept keys, as written: `"workload.interval" = ["20ms", "30ms"]`.
    pub axes: BTreeMap<String, Vec<String>>,
}

impl Filter {
    /// Whether a point is one of those.
    pub fn takes(&self, cell: &Cell) -> bool {
        self.takes_at(&cell.experiment, &cell.conditions)
    }

    /// Whether the points of an experiment under such conditions are of those.
    pub fn takes_at(&self, experiment: &String, conditions: &Conditions) -> bool {
        let Conditions { loss, rate, delay_ms, ref workload, .. } = *conditions;
        let on_axis = |(key, values): (&String, &Vec<String>)| {
            conditions.axis(key).is_some_and(|value| values.iter().any(|wanted| wanted == value))
        };
        let inside = |range: Option<[f64; 2]>, value: f64| {
            range.is_none_or(|[min, max]| value >= min * (1.0 - 1e-9) && value <= max * (1.0 + 1e-9))
        };
        (self.experiments.is_empty() || self.experiments.contains(experiment))
            && inside(self.loss, loss)
            && inside(self.rate, rate)
            && inside(self.delay_ms.map(|delay| [delay, delay]), delay_ms)
            && self.workload.as_ref().is_none_or(|wanted| wanted == workload)
            && self.axes.iter().all(on_axis)
    }
}

impl Conditions {
    /// Whether these are the same, but for what a transport has of the workload for itself.
    pub fn are_those_of(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.loss, it.rate, it.delay_ms);
        of(self) == of(other) && self.axes == other.axes
    }

    /// The round-trip time of the path without queues, in ms.
    pub fn rtt_ms(&self) -> f64 {
        2.0 * self.delay_ms
    }

    /// The value of a swept key, as written.
    pub fn axis(&self, key: &str) -> Option<&str> {
        self.axes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

impl Cell {
    /// Messages that were to be sent.
    pub fn offered(&self) -> u64 {
        self.runs.iter().map(|run| run.offered).sum()
    }

    /// Whether they are frames, each with a time to be played.
    pub fn is_played(&self) -> bool {
        self.runs.iter().any(|run| run.playback.is_some())
    }

    /// Messages that were offered and never arrived.
    pub fn lost(&self) -> u64 {
        self.runs.iter().map(|run| run.offered - run.completed).sum()
    }

    /// How many runs did not carry their load: they ended early, fell more than a second behind, or had a backlog that grew.
    pub fn collapsed(&self) -> usize {
        let early = |at: usize| self.early.get(at).is_some_and(|early| *early);
        let is_due = self.conditions.rate > 0.0 && !self.conditions.changes;
        let collapsed = |run: &Summary| run.fell_behind() || (is_due && run.backlog_grew());
        self.runs.iter().enumerate().filter(|(at, run)| early(*at) || collapsed(run)).count()
    }

    /// How many runs ended early.
    pub fn ended_early(&self) -> usize {
        self.early.iter().filter(|early| **early).count()
    }

    /// Whether at least half of the runs came to their end: else the others say nothing of the point.
    pub fn mostly_ended(&self) -> bool {
        2 * self.ended_early() <= self.runs.len()
    }

    /// Whether most runs delivered what the load asked for, as fast as it asked.
    pub fn carries(&self) -> bool {
        self.latency.completed() > 0 && !self.mostly_collapsed() && !self.falls_behind()
    }

    /// Whether more than half of the runs did not carry their load.
    pub fn mostly_collapsed(&self) -> bool {
        2 * self.collapsed() > self.runs.len()
    }

    /// Messages that time makes due take longer and longer on a path that stays as it is: they are more than it delivers. A backlog
    /// that grows evenly makes the later half three times as long as the earlier one.
    fn falls_behind(&self) -> bool {
        let halves = self.runs.iter().filter_map(|run| run.halves.means_ms());
        let (earlier, later) = halves.fold((0.0, 0.0), |(a, b), (earlier, later)| (a + earlier, b + later));
        !self.steady && !self.conditions.changes && self.conditions.rate > 0.0 && later > 2.0 * earlier
    }

    /// Why the mean depends on the length of the runs.
    pub fn why_unsteady(&self) -> &'static str {
        match self.conditions.changes {
            true => "the path changes during a run, and the mean depends on the length of the runs",
            false => "the mean depends on the length of the runs",
        }
    }

    /// What `value` says of each run; `None` of those that ended early, for what is missing there is the slowest.
    pub fn of_ended(&self, value: impl Fn(&Summary) -> Option<f64>) -> Vec<Option<f64>> {
        let ended = |at: usize| !self.early.get(at).is_some_and(|early| *early);
        self.runs.iter().enumerate().map(|(at, run)| value(run).filter(|_| ended(at))).collect()
    }

    /// Why it has no mean response time, if it has none.
    pub fn why_no_mean(&self) -> Option<String> {
        let unsteady = || format!("no steady state: {}", self.why_unsteady());
        if self.steady { self.stopped.clone() } else { Some(unsteady()) }
    }

    /// The mean response time in ms of each repetition; `None` if one of them delivered nothing, or they show no steady state.
    pub fn means(&self) -> Option<Vec<f64>> {
        self.runs.iter().map(|run| run.latency.mean_ms().filter(|_| self.steady)).collect()
    }

    /// A quantile of the response time over all offered messages, in ms.
    pub fn quantile_ms(&self, p: f64) -> Option<f64> {
        self.latency.quantile(p).map(|latency| latency.as_millis_f64())
    }

    /// Where this point stands, for people: `exp1, 1 % loss, 100/s`, or by what else was swept: `grid, queue 12p`.
    pub fn place(&self) -> String {
        let Conditions { loss, rate, ref axes, .. } = self.conditions;
        let number = crate::plot::number;
        if axes.iter().any(|(key, _)| !["network.loss", "workload.rate"].contains(&key.as_str())) {
            let axes = axes.iter().map(|(key, value)| format!(", {} {value}", short(key)));
            return self.experiment.clone() + &axes.collect::<String>();
        }
        format!("{}, {} % loss, {}/s", self.experiment, number(loss), number(rate))
    }
}

/// What the runs of points count, in words.
pub fn counted<'c>(mut cells: impl Iterator<Item = &'c Cell>) -> &'static str {
    let first = cells.next().map_or(RecordKind::Message, |cell| cell.kind);
    if cells.all(|cell| cell.kind == first) { first.plural() } else { "messages" }
}

/// A swept key for people: `interval` of `workload.interval`.
pub fn short(key: &str) -> &str {
    match key {
        "background.count" => "competitors",
        _ => key.rsplit('.').next().unwrap_or_default(),
    }
}

impl Dataset {
    /// The points of one transport.
    pub fn of<'a>(&'a self, transport: &'a str, filter: &'a Filter) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(move |cell| cell.transport == transport && filter.takes(cell))
    }

    /// All points of the plan; with its runs each that has some.
    pub fn planned(&self) -> impl Iterator<Item = (&Cell, Option<&Cell>)> {
        let measured = self.cells.iter().map(|cell| (cell, Some(cell)));
        measured.chain(self.unmeasured.iter().map(|cell| (cell, None)))
    }

    /// The labels of all transports that `filter` finds, in the order of the experiments.
    pub fn transports(&self, filter: &Filter) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for cell in self.cells.iter().filter(|cell| filter.takes(cell)) {
            if !labels.contains(&cell.transport.as_str()) {
                labels.push(&cell.transport);
            }
        }
        labels
    }

    /// The point of `transport` under the same conditions as `like`.
    pub fn beside(&self, like: &Cell, transport: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            cell.transport == transport
                && cell.experiment == like.experiment
                && cell.conditions.are_those_of(&like.conditions)
        })
    }
}
