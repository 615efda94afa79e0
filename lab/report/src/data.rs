//! The points that the report shows, from any world.

use std::collections::BTreeMap;

use hol_measure::{
    Distribution, Interval, MeanDelayBreakdown, Outage, OutageCurve, RecordKind, Summary, Timeline,
    TimeoutCounts, Waterfall,
};

use crate::validation::ComparedPoint;
use hol_base::Duration;
use hol_lab::{CollapseRule, Metric, PointLoad, is_transport_option};

/// All points of all experiments.
#[derive(Debug, Clone, Default)]
pub struct Dataset {
    /// The points in the order of the experiments and their plans.
    pub cells: Vec<Cell>,
    /// The comparison with another world of the points measured in both; `None` if there are no results of another world.
    pub compared: Option<Vec<ComparedPoint>>,
    /// Planned points without a run, because their runs failed or the sweep was interrupted.
    pub unmeasured: Vec<Cell>,
}

/// A point: one transport under one set of conditions.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Name of the experiment, such as `exp1`.
    pub experiment: String,
    /// Label of the transport, such as `SCTP-8 (2006)`.
    pub transport: String,
    /// Specification of the transport, such as `sctp:streams=8,stack=linux-2.6.16`.
    pub spec: String,
    /// Kind of the records that the runs summarise.
    pub kind: RecordKind,
    /// The number of streams (or connections) that carry messages.
    pub streams: u16,
    /// The conditions of the network and the workload.
    pub conditions: Conditions,
    /// The repetitions in their order: two points of an experiment have the same losses in the same repetition.
    pub runs: Vec<Summary>,
    /// The name of each class of message sizes, with its repetitions; empty if all sizes are the same.
    pub classes: Vec<(String, Vec<Summary>)>,
    /// The deliveries over time of each repetition; empty if the experiment does not request them.
    pub timelines: Vec<Timeline>,
    /// The effect of each disruption of the path, by run.
    pub outages: Vec<Vec<Outage>>,
    /// The response times around the first disruption, in the first repetition.
    pub outage_curve: Option<OutageCurve>,
    /// The distribution of the response times of all repetitions.
    pub latency: Distribution,
    /// The mean delay of a message by component; `None` if the world does not observe it.
    pub delay_breakdown: Option<MeanDelayBreakdown>,
    /// Why a run ended early; `None` if no run did.
    pub stop_reason: Option<String>,
    /// Whether each run ended early; empty if no run did.
    pub ended_early: Vec<bool>,
    /// Offered and delivered load; `None` unless messages are due at a rate.
    pub load: Option<PointLoad>,
    /// Whether there is a steady state: as far as the results show, longer runs would have the same mean response time.
    pub is_steady: bool,
    /// The retransmission timeouts of all runs; `None` if the transport has none, or if they are not counted.
    pub timeouts: Option<TimeoutCounts>,
    /// The metrics that are not in the summaries, including those that programs report, each with its value in every
    /// run.
    pub values: Vec<(Metric, Vec<Option<f64>>)>,
    /// The waterfall of one page in the first repetition, file by file.
    pub waterfall: Option<Waterfall>,
    /// The metrics of the point's flows, if messages go in one direction or there is background traffic.
    pub flows: Option<Flows>,
}

/// The metrics of a point's flows, each with its confidence interval over the repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Flows {
    /// A description of the point with its axes.
    pub point: String,
    /// The highest throughput that the path allows with the transport's headers, in kbit/s; `None` if there is no closed form.
    pub ceiling_kbps: Option<f64>,
    /// The throughput of a background flow during the measured flow, in kbit/s.
    pub background_kbps: Option<Interval>,
}

/// The conditions that vary between the points of an experiment, apart from the transport.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions {
    /// Packet loss in percent, of the direction with the higher loss.
    pub loss: f64,
    /// The offered rate in messages per second.
    pub rate: f64,
    /// One-way propagation delay between client and server in ms, the mean of both directions.
    pub delay_ms: f64,
    /// The sum of the propagation delays of a message and of its reply, if there is one, in ms. `None` if the
    /// path changes, or if paths differ.
    pub propagation_ms: Option<f64>,
    /// The kind of workload and its message size, as in `echo 100B`.
    pub workload: String,
    /// Whether messages are due at random times (Poisson) rather than at regular intervals.
    pub is_poisson: bool,
    /// Whether the path is one link, the same in both directions, with independent losses and no other impairment, and a load far below its
    /// rate.
    pub is_plain: bool,
    /// Whether the network may treat two repetitions differently: random loss, jitter and the like.
    pub is_random: bool,
    /// How long the workload sends; `None` if it has no time limit.
    pub lasts: Option<Duration>,
    /// Whether the path itself changes during a run, by events, a trace or a handover.
    pub path_changes: bool,
    /// The times when a link goes down or the client moves, in s since the start of a run, each with a
    /// description.
    pub disruptions: Vec<(f64, String)>,
    /// The swept keys with their values as written, in the order of the file.
    pub axes: Vec<(String, String)>,
}

/// A selection of points: an empty list or an absent range selects all.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Names of experiments.
    pub experiments: Vec<String>,
    /// The lowest and the highest loss, in percent.
    pub loss: Option<[f64; 2]>,
    /// The lowest and the highest rate, in 1/s.
    pub rate: Option<[f64; 2]>,
    /// The one-way delay, in ms.
    pub delay_ms: Option<f64>,
    /// The workload, as in `simco` or `echo 100B`.
    pub workload: Option<String>,
    /// Values of swept keys, as written: `"workload.interval" = ["20ms", "30ms"]`. An option of a transport does not
    /// restrict the points of other transports.
    pub axes: BTreeMap<String, Vec<String>>,
}

impl Filter {
    /// Returns whether a point is selected.
    pub fn selects(&self, cell: &Cell) -> bool {
        self.selects_conditions(&cell.experiment, &cell.conditions)
    }

    /// Returns whether the points of an experiment under these conditions are selected.
    pub fn selects_conditions(&self, experiment: &String, conditions: &Conditions) -> bool {
        let Conditions { loss, rate, delay_ms, ref workload, .. } = *conditions;
        let on_axis = |(key, values): (&String, &Vec<String>)| {
            conditions
                .axis_value(key)
                .map_or_else(|| is_transport_option(key), |value| values.iter().any(|wanted| wanted == value))
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
    /// Returns whether the conditions are the same, apart from workload keys that a transport sets for itself, and from
    /// options that only one of the transports has.
    pub fn same_conditions_as(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.loss, it.rate, it.delay_ms);
        of(self) == of(other) && self.has_axes_of(other) && other.has_axes_of(self)
    }

    /// Returns whether every swept key has the value that it has in `other`; a key that `other` lacks must be an option
    /// of a transport.
    fn has_axes_of(&self, other: &Self) -> bool {
        self.axes.iter().all(|(key, value)| {
            other.axis_value(key).map_or_else(|| is_transport_option(key), |known| known == value)
        })
    }

    /// Returns the round-trip time of the path without queues, in ms.
    pub fn rtt_ms(&self) -> f64 {
        2.0 * self.delay_ms
    }

    /// Returns the value of a swept key, as written.
    pub fn axis_value(&self, key: &str) -> Option<&str> {
        self.axes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

impl Cell {
    /// Returns the number of messages that were due.
    pub fn offered(&self) -> u64 {
        self.runs.iter().map(|run| run.offered).sum()
    }

    /// Returns the name of each size class, and the point restricted to the messages of this class.
    pub fn by_class(&self) -> Vec<(&str, Self)> {
        let of_class = |runs: &Vec<Summary>| {
            let mut latency = Distribution::default();
            runs.iter().for_each(|run| latency.merge(&run.latency));
            // Values for the whole point, such as its flows and outages, do not apply to a class.
            let whole = Self {
                classes: Vec::new(),
                values: Vec::new(),
                outages: Vec::new(),
                delay_breakdown: None,
                flows: None,
                ..self.clone()
            };
            Self { runs: runs.clone(), latency, ..whole }
        };
        self.classes.iter().map(|(name, runs)| (name.as_str(), of_class(runs))).collect()
    }

    /// Returns whether the records are frames, which have a playout time.
    pub fn has_playout_times(&self) -> bool {
        self.runs.iter().any(|run| run.playback.is_some())
    }

    /// Returns the number of runs that delivered something after each disruption of the path; `None` without
    /// disruptions.
    pub fn recovered_runs(&self) -> Option<usize> {
        let recovered = |outages: &&Vec<Outage>| outages.iter().all(|outage| outage.is_over);
        let is_disrupted = self.outages.iter().any(|outages| !outages.is_empty());
        is_disrupted.then(|| self.outages.iter().filter(recovered).count())
    }

    /// Returns whether every run met a disruption of the path; where runs begin at random positions of a trace, some do not.
    pub fn is_always_disrupted(&self) -> bool {
        !self.outages.is_empty() && self.outages.iter().all(|outages| !outages.is_empty())
    }

    /// Returns whether nothing is random: repetitions with different seeds have the same records.
    pub fn is_deterministic(&self) -> bool {
        self.runs.len() > 1 && self.runs.windows(2).all(|pair| pair[0].digest == pair[1].digest)
    }

    /// Returns the number of messages that were due and never arrived.
    pub fn lost_messages(&self) -> u64 {
        self.runs.iter().map(|run| run.offered - run.completed).sum()
    }

    /// Returns the number of runs that did not carry their load, as [`hol_lab::PointResult::collapsed_runs`] does.
    pub fn collapsed_runs(&self) -> usize {
        let early = |at: usize| self.ended_early.get(at).is_some_and(|early| *early);
        let rule = CollapseRule::new(self.conditions.path_changes, self.conditions.rate, self.load);
        self.runs.iter().enumerate().filter(|(at, run)| early(*at) || rule.is_overloaded(run)).count()
    }

    /// Returns the number of runs that ended early.
    pub fn early_end_count(&self) -> usize {
        self.ended_early.iter().filter(|early| **early).count()
    }

    /// Returns whether at least half of the runs were completed; otherwise the completed runs are not representative.
    pub fn is_mostly_completed(&self) -> bool {
        2 * self.early_end_count() <= self.runs.len()
    }

    /// Returns whether most runs delivered the load as fast as it was offered.
    pub fn carries_load(&self) -> bool {
        self.latency.completed() > 0 && !self.is_mostly_overloaded() && !self.has_growing_backlog()
    }

    /// Returns whether more than half of the runs did not carry their load.
    pub fn is_mostly_overloaded(&self) -> bool {
        2 * self.collapsed_runs() > self.runs.len()
    }

    /// Returns whether in most runs scheduled messages take longer and longer on a path that does not change, because the load exceeds its
    /// capacity. With a linearly growing backlog the later half takes three times as long as the earlier one.
    fn has_growing_backlog(&self) -> bool {
        let grows =
            |run: &&Summary| run.halves.means_ms().is_some_and(|(earlier, later)| later > 2.0 * earlier);
        !self.is_steady
            && !self.conditions.path_changes
            && self.conditions.rate > 0.0
            && 2 * self.runs.iter().filter(grows).count() > self.runs.len()
    }

    /// Explains why the mean depends on the length of the runs.
    pub fn why_unsteady(&self) -> &'static str {
        match self.conditions.path_changes {
            true => "the path changes during a run, so the mean depends on the length of the runs",
            false => "the mean depends on the length of the runs",
        }
    }

    /// Returns `value` of each run; `None` for runs that ended early, because their slowest messages are missing.
    pub fn of_completed_runs(&self, value: impl Fn(&Summary) -> Option<f64>) -> Vec<Option<f64>> {
        let ended = |at: usize| !self.ended_early.get(at).is_some_and(|early| *early);
        self.runs.iter().enumerate().map(|(at, run)| value(run).filter(|_| ended(at))).collect()
    }

    /// Explains why the point has no mean response time; `None` if it has one.
    pub fn why_no_mean(&self) -> Option<String> {
        let unsteady = || format!("no steady state: {}", self.why_unsteady());
        if self.is_steady { self.stop_reason.clone() } else { Some(unsteady()) }
    }

    /// Returns the mean response time of each repetition, in ms; `None` if one of them delivered nothing, or there is no steady state.
    pub fn means(&self) -> Option<Vec<f64>> {
        self.runs.iter().map(|run| run.latency.mean_ms().filter(|_| self.is_steady)).collect()
    }

    /// Returns a quantile of the response time over all messages that were due, in ms.
    pub fn quantile_ms(&self, p: f64) -> Option<f64> {
        self.latency.quantile(p).map(|latency| latency.as_millis_f64())
    }

    /// Describes the conditions: `exp1, 1 % loss, 100/s`, or by other swept keys: `grid, queue 12p`.
    pub fn describe_conditions(&self) -> String {
        let Conditions { loss, rate, ref axes, .. } = self.conditions;
        let number = crate::plot::number;
        if axes.iter().any(|(key, _)| !["network.loss", "workload.rate"].contains(&key.as_str())) {
            let axes = axes.iter().map(|(key, value)| format!(", {} {value}", last_key_part(key)));
            return self.experiment.clone() + &axes.collect::<String>();
        }
        format!("{}, {} % loss, {}/s", self.experiment, number(loss), number(rate))
    }
}

/// Returns the plural noun for the records of these points, such as `pages`; `messages` if their kinds differ.
pub fn record_noun<'c>(mut cells: impl Iterator<Item = &'c Cell>) -> &'static str {
    let first = cells.next().map_or(RecordKind::Message, |cell| cell.kind);
    if cells.all(|cell| cell.kind == first) { first.plural() } else { "messages" }
}

/// Returns the last part of a swept key: `interval` for `workload.interval`. The exception is `competitors`
/// for `background.count`.
pub fn last_key_part(key: &str) -> &str {
    match key {
        "background.count" => "competitors",
        _ => key.rsplit('.').next().unwrap_or_default(),
    }
}

impl Dataset {
    /// Returns the points of one transport.
    pub fn cells_of_transport<'a>(
        &'a self,
        transport: &'a str,
        filter: &'a Filter,
    ) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(move |cell| cell.transport == transport && filter.selects(cell))
    }

    /// Returns all points of the plan, with the measured point if there is one.
    pub fn planned_points(&self) -> impl Iterator<Item = (&Cell, Option<&Cell>)> {
        let measured = self.cells.iter().map(|cell| (cell, Some(cell)));
        measured.chain(self.unmeasured.iter().map(|cell| (cell, None)))
    }

    /// Returns the labels of all transports that `filter` selects, in the order of the experiments.
    pub fn transports(&self, filter: &Filter) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for cell in self.cells.iter().filter(|cell| filter.selects(cell)) {
            if !labels.contains(&cell.transport.as_str()) {
                labels.push(&cell.transport);
            }
        }
        labels
    }

    /// Returns the results of `transport` under the same conditions as `like`.
    pub fn with_same_conditions(&self, like: &Cell, transport: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            cell.transport == transport
                && cell.experiment == like.experiment
                && cell.conditions.same_conditions_as(&like.conditions)
        })
    }
}
