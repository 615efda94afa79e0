//! The table of metrics: name, unit, which of two values is better, and how the value of a run is computed.
//!
//! Tables, figures, claims and the terminal use this table. A new metric is a variant of [`Metric`] and an entry of [`TABLE`].

use hol_base::Duration;
use hol_measure::{ConfidenceInterval, Interval, Playback, RecordKind, Summary, jain_index};
use hol_scenario::Better;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::defined_metric::DefinedMetric;
use crate::flows::throughput;
use crate::point::Point;
use crate::point_result::PointResult;
use crate::run_result::RunResult;

/// A metric: one number for each repetition of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The mean response time, in ms.
    #[default]
    ResponseTime,
    /// The 99th percentile of the response time, in ms.
    Tail,
    /// The rate of user data from the first message sent to the last one delivered, in kbit/s.
    Throughput,
    /// The time from the workload's start until it was connected, in ms.
    ConnectTime,
    /// Jain's fairness index of the workload and each background flow.
    Fairness,
    /// The fraction of messages that arrived, in percent.
    Delivered,
    /// The time to the first octet of a page, in ms.
    FirstOctets,
    /// The mean time from the discovery of a page's object to its arrival, or of a request in a batch, in ms.
    ObjectTime,
    /// The fraction of a media flow's frames that could be played, in percent.
    Playable,
    /// The number of sequences of frames that could not be played, per minute.
    Glitches,
    /// The number of packets that did not arrive, divided by the number of messages that did.
    PacketsLost,
    /// The number of retransmitted data packets, divided by the number of messages that arrived.
    Retransmissions,
    /// The longest time without a delivery around a disruption of the path, in ms.
    Outage,
    /// The number of messages that were late because of a disruption of the path, or never arrived.
    LateMessages,
    /// The time from a disruption of the path until the first message that it made late was delivered, in ms.
    BacklogFirst,
    /// The time from a disruption of the path until the last message that it made late was delivered, in ms.
    BacklogLast,
    /// The time from a disruption of the path until the transport reported to the application that the connection had
    /// failed, in ms.
    Noticed,
    /// A metric that a program reports, in its own unit.
    #[serde(skip)]
    Defined(DefinedMetric),
}

/// The properties of a metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricInfo {
    /// The metric to which the properties belong.
    pub metric: Metric,
    /// Name of the metric in experiments and claims.
    pub name: &'static str,
    /// Title of the metric on the axes of figures.
    pub title: &'static str,
    /// Unit of the metric.
    pub unit: &'static str,
    /// Whether a larger or a smaller value is better.
    pub better: Better,
    /// The comparatives for the first of two values: the first word if it is better, the second if it is worse.
    pub comparatives: [&'static str; 2],
    /// The words that say that two values are equal.
    pub equal: &'static str,
    /// Largest possible value of the metric, if there is one.
    pub max: Option<f64>,
    /// Whether the metric is meaningless in runs that did not carry the offered load. A throughput is always
    /// meaningful: it shows the load that was carried.
    pub needs_load: bool,
    /// Whether the metric is a duration that each run has only once.
    pub is_time_of_run: bool,
    /// Name of the column with the means in a figure's CSV file.
    pub column: &'static str,
    /// Name of the column with the theoretical values in a figure's CSV file, and a description of the formula;
    /// `None` without a formula.
    pub theory: Option<[&'static str; 2]>,
    /// The condition for a point to have the metric; `None` if all points have it.
    pub needs: Option<MetricRequirement>,
    /// How the value of the metric in a run is computed.
    pub extract: MetricSource,
    /// Columns of the metric in the tables of points.
    pub columns: &'static [Column],
}

/// A condition that a point must meet to have a metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricRequirement {
    /// Function that returns whether a point meets the condition.
    pub is_met: fn(&Point) -> bool,
    /// How to change an experiment so that its points have the metric.
    pub cure: &'static str,
}

/// How the value of a metric in a run is computed.
#[derive(Debug, Clone, Copy)]
pub enum MetricSource {
    /// The value is computed from the summary of the run's records.
    Summary(fn(&Summary) -> Option<f64>),
    /// The value is computed from the whole result of the run.
    Run(fn(&Point, &RunResult) -> Option<f64>),
}

/// A column of a table of points.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name of the column, which ends with the unit.
    pub name: &'static str,
    /// Whether the column also appears in the terminal's table.
    pub is_printed: bool,
    /// Function that returns the value of a point in this column.
    pub value_of: fn(&PointResult) -> Value,
}

/// The names of all metrics, as in experiment files.
pub const METRICS: [&str; TABLE.len()] = {
    let mut names = [""; TABLE.len()];
    let mut at = 0;
    while at < TABLE.len() {
        names[at] = TABLE[at].name;
        at += 1;
    }
    names
};

/// The fields of a metric that is a time, unless the metric sets its own.
const TIME_METRIC_DEFAULTS: MetricInfo = MetricInfo {
    metric: Metric::ResponseTime,
    name: "response-time",
    title: "mean response time",
    unit: "ms",
    better: Better::Less,
    comparatives: ["faster", "slower"],
    equal: "as fast",
    max: None,
    needs_load: false,
    is_time_of_run: false,
    column: "mean_ms",
    theory: None,
    needs: None,
    extract: MetricSource::Summary(|run| run.latency.mean_ms()),
    columns: &[],
};

const REQUIRES_FLOWS: MetricRequirement = MetricRequirement {
    is_met: Point::has_flow_metrics,
    cure: "use a workload without replies (oneway, bulk), or add a [[background]]; pages, batches and programs do not have this metric",
};
const REQUIRES_FRAMES: MetricRequirement = MetricRequirement {
    is_met: Point::has_playout_times,
    cure: "only media frames have this metric; use the workload media",
};
const REQUIRES_DISRUPTION: MetricRequirement = MetricRequirement {
    is_met: |point| point.is_disrupted(),
    cure: "only runs with a disruption of the path have this metric: add [[network.events]] with down = true, or [network.handover]",
};
const REQUIRES_COMPETITORS: MetricRequirement = MetricRequirement {
    is_met: |point| point.competing_flow_count() > 0,
    cure: "add a [[background]] that competes with the workload",
};

/// All metrics with their properties, in the order of the tables.
pub const TABLE: [MetricInfo; 17] = [
    MetricInfo {
        needs_load: true,
        theory: Some(["closed_form_ms", "the closed form, where it applies"]),
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::Tail,
        name: "tail",
        title: "mean 99th percentile of the runs",
        needs_load: true,
        column: "p99_ms",
        extract: MetricSource::Summary(|run| run.latency.quantile(0.99).map(|at| at.as_millis_f64())),
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::Throughput,
        name: "throughput",
        title: "throughput",
        unit: "kbit/s",
        better: Better::More,
        column: "throughput_kbps",
        theory: Some(["ceiling_kbps", "the link rate minus the headers of this transport"]),
        needs: Some(REQUIRES_FLOWS),
        extract: MetricSource::Run(|_, run| throughput(run)),
        columns: &[
            printed_column("throughput_kbps", |point| mean(point.mean_of(Metric::Throughput))),
            printed_column("throughput_ci95_kbps", |point| half_width(point.mean_of(Metric::Throughput))),
            printed_column("messages_per_s", |point| mean(point.messages_per_s())),
            printed_column("messages_ci95_per_s", |point| half_width(point.messages_per_s())),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::ConnectTime,
        name: "connect-time",
        title: "time to connect",
        is_time_of_run: true,
        column: "connect_ms",
        needs: Some(REQUIRES_FLOWS),
        extract: MetricSource::Run(|_, run| run.connect_time.map(|time| time.as_millis_f64())),
        columns: &[
            printed_column("connect_ms", |point| mean(point.mean_of(Metric::ConnectTime))),
            printed_column("connect_ci95_ms", |point| half_width(point.mean_of(Metric::ConnectTime))),
            printed_column("unconnected", |point| json!(point.unconnected_runs())),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::Fairness,
        name: "fairness",
        title: "Jain's fairness index",
        unit: "of 1",
        better: Better::More,
        comparatives: ["fairer", "less fair"],
        equal: "as fair",
        max: Some(1.0),
        column: "fairness",
        needs: Some(REQUIRES_COMPETITORS),
        extract: MetricSource::Run(|point, run| {
            let background = run.background.iter().map(|share| share.octets);
            let octets = background.chain([run.summary.bytes]).map(|octets| octets as f64);
            jain_index(&octets.collect::<Vec<_>>()).filter(|_| point.competing_flow_count() > 0)
        }),
        columns: &[
            printed_column("background_kbps", |point| mean(point.background_kbps())),
            stored_column("background_ci95_kbps", |point| half_width(point.background_kbps())),
            printed_column("fairness", |point| mean(point.mean_of(Metric::Fairness))),
            stored_column("fairness_ci95", |point| half_width(point.mean_of(Metric::Fairness))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::Delivered,
        name: "delivered",
        title: "messages delivered",
        unit: "%",
        better: Better::More,
        comparatives: ["more reliable", "less reliable"],
        equal: "as reliable",
        max: Some(100.0),
        needs_load: true,
        column: "delivered_percent",
        extract: MetricSource::Summary(|run| {
            (run.offered > 0).then(|| 100.0 * run.completed as f64 / run.offered as f64)
        }),
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::FirstOctets,
        name: "first-octets",
        title: "time to the first octets",
        is_time_of_run: true,
        column: "first_octets_ms",
        extract: MetricSource::Run(|_, run| run.other.get(&RecordKind::Head)?.latency.mean_ms()),
        columns: &[
            printed_column("first_octets_ms", |point| mean(point.mean_of(Metric::FirstOctets))),
            stored_column("first_octets_ci95_ms", |point| half_width(point.mean_of(Metric::FirstOctets))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::ObjectTime,
        name: "object-time",
        title: "mean time of an object or request",
        is_time_of_run: true,
        column: "object_ms",
        extract: MetricSource::Run(|_, run| {
            let parts = [RecordKind::Object, RecordKind::Transaction];
            parts.iter().find_map(|kind| run.other.get(kind))?.latency.mean_ms()
        }),
        columns: &[
            printed_column("objects_ms", |point| mean(point.mean_of(Metric::ObjectTime))),
            stored_column("objects_ci95_ms", |point| half_width(point.mean_of(Metric::ObjectTime))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::Playable,
        name: "playable",
        title: "share of playable frames",
        unit: "%",
        better: Better::More,
        comparatives: ["more playable", "less playable"],
        equal: "as playable",
        max: Some(100.0),
        column: "playable_percent",
        needs: Some(REQUIRES_FRAMES),
        extract: MetricSource::Summary(|run| run.playback.as_ref().map(Playback::playable_percent)),
        columns: &[
            printed_column("playable_percent", |point| mean(point.mean_of(Metric::Playable))),
            stored_column("playable_ci95_percent", |point| half_width(point.mean_of(Metric::Playable))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::Glitches,
        name: "glitches",
        title: "glitches",
        unit: "/min",
        comparatives: ["fewer glitches", "more glitches"],
        equal: "as many glitches",
        column: "glitches_per_minute",
        needs: Some(REQUIRES_FRAMES),
        extract: MetricSource::Summary(|run| run.playback.as_ref().and_then(Playback::glitches_per_minute)),
        columns: &[
            printed_column("glitches_per_minute", |point| mean(point.mean_of(Metric::Glitches))),
            stored_column("glitches_ci95_per_minute", |point| half_width(point.mean_of(Metric::Glitches))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::PacketsLost,
        name: "packets-lost",
        title: "packets lost per message",
        unit: "packets",
        comparatives: ["fewer packets lost", "more packets lost"],
        equal: "as many packets lost",
        column: "packets_lost",
        extract: MetricSource::Run(|_, run| {
            let completed = run.summary.completed;
            run.packets_lost.filter(|_| completed > 0).map(|lost| lost as f64 / completed as f64)
        }),
        columns: &[
            printed_column("packets", |point| json!(point.packets())),
            printed_column("packets_lost_each", |point| mean(point.mean_of(Metric::PacketsLost))),
            stored_column("packets_lost_each_ci95", |point| half_width(point.mean_of(Metric::PacketsLost))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::Retransmissions,
        name: "retransmissions",
        title: "retransmissions per message",
        unit: "packets",
        comparatives: ["fewer retransmissions", "more retransmissions"],
        equal: "as many retransmissions",
        column: "retransmissions",
        extract: MetricSource::Run(|_, run| {
            let completed = run.summary.completed;
            let counts = run.counts.as_ref().filter(|_| completed > 0)?;
            Some((counts.fast_retransmissions + counts.timeout_retransmissions) as f64 / completed as f64)
        }),
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::Outage,
        name: "outage",
        title: "outage",
        comparatives: ["quicker to recover", "slower to recover"],
        equal: "as quick to recover",
        column: "outage_ms",
        needs: Some(REQUIRES_DISRUPTION),
        extract: MetricSource::Run(|_, run| run.outage_ms()),
        columns: &[
            printed_column("outage_ms", |point| mean(point.mean_of(Metric::Outage))),
            printed_column("outage_ci95_ms", |point| half_width(point.mean_of(Metric::Outage))),
            printed_column("runs_not_recovered", |point| json!(point.unrecovered_runs())),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::LateMessages,
        name: "late-messages",
        title: "messages late because of the outage",
        unit: "messages",
        comparatives: ["fewer late messages", "more late messages"],
        equal: "as many late messages",
        column: "late_messages",
        needs: Some(REQUIRES_DISRUPTION),
        extract: MetricSource::Run(|_, run| {
            let late = run.outages.iter().map(|outage| outage.late).sum::<u64>() as f64;
            (!run.outages.is_empty()).then_some(late)
        }),
        columns: &[
            printed_column("late_messages", |point| mean(point.mean_of(Metric::LateMessages))),
            stored_column("late_messages_ci95", |point| half_width(point.mean_of(Metric::LateMessages))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::BacklogFirst,
        name: "backlog-first",
        title: "time until the first late message",
        column: "backlog_first_ms",
        needs: Some(REQUIRES_DISRUPTION),
        extract: MetricSource::Run(|_, run| longest(run.outages.iter().map(|outage| outage.first))),
        columns: &[
            printed_column("backlog_first_ms", |point| mean(point.mean_of(Metric::BacklogFirst))),
            stored_column("backlog_first_ci95_ms", |point| half_width(point.mean_of(Metric::BacklogFirst))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::BacklogLast,
        name: "backlog-last",
        title: "time until the last late message",
        column: "backlog_last_ms",
        needs: Some(REQUIRES_DISRUPTION),
        extract: MetricSource::Run(|_, run| longest(run.outages.iter().map(|outage| outage.last))),
        columns: &[
            printed_column("backlog_last_ms", |point| mean(point.mean_of(Metric::BacklogLast))),
            stored_column("backlog_last_ci95_ms", |point| half_width(point.mean_of(Metric::BacklogLast))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
    MetricInfo {
        metric: Metric::Noticed,
        name: "noticed",
        title: "time until the application gets an error",
        comparatives: ["quicker to report the failure", "slower to report the failure"],
        equal: "as quick to report the failure",
        column: "noticed_ms",
        needs: Some(REQUIRES_DISRUPTION),
        extract: MetricSource::Run(|point, run| {
            let failed_at = run.failed_at?;
            let disruptions = point.network_of(run.key.repetition).disruptions();
            let last = disruptions.iter().rfind(|disruption| disruption.at <= failed_at)?;
            Some(failed_at.saturating_sub(last.at).as_millis_f64())
        }),
        columns: &[
            printed_column("noticed_ms", |point| mean(point.mean_of(Metric::Noticed))),
            stored_column("noticed_ci95_ms", |point| half_width(point.mean_of(Metric::Noticed))),
        ],
        ..TIME_METRIC_DEFAULTS
    },
];

/// Returns the longest of those times that are known, in ms.
fn longest(times: impl Iterator<Item = Option<Duration>>) -> Option<f64> {
    times.flatten().max().map(|time| time.as_millis_f64())
}

const fn printed_column(name: &'static str, value_of: fn(&PointResult) -> Value) -> Column {
    Column { name, is_printed: true, value_of }
}

const fn stored_column(name: &'static str, value_of: fn(&PointResult) -> Value) -> Column {
    Column { name, is_printed: false, value_of }
}

fn mean(interval: Option<Interval>) -> Value {
    json!(interval.map(|interval| interval.mean))
}

fn half_width(interval: Option<Interval>) -> Value {
    json!(interval.map(|interval| interval.half_width))
}

impl PointResult {
    /// Returns the value of the metric in each repetition.
    pub fn values(&self, metric: Metric) -> Vec<Option<f64>> {
        self.runs.iter().map(|run| metric.of_run(&self.point, run)).collect()
    }

    /// Returns the mean of the metric over the repetitions that have a value.
    pub fn mean_of(&self, metric: Metric) -> Option<Interval> {
        self.interval_over_runs(|run| metric.of_run(&self.point, run))
    }
}

impl Metric {
    /// Returns the interval, cut off at the values that the metric cannot exceed. Only metrics of programs may be
    /// negative.
    pub fn limit(self, bounds: ConfidenceInterval) -> ConfidenceInterval {
        match self {
            Self::Defined(_) => bounds,
            _ => bounds.clamp_to(0.0, self.info().max.unwrap_or(f64::INFINITY)),
        }
    }

    /// Returns the metric with this name in experiment files.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|info| info.name == name).map(|info| info.metric)
    }

    /// Returns the properties of the metric.
    pub fn info(self) -> MetricInfo {
        if let Self::Defined(defined) = self {
            return MetricInfo {
                metric: self,
                name: defined.name,
                title: defined.name,
                unit: defined.unit,
                better: defined.better,
                comparatives: defined.comparatives,
                equal: defined.word_for_equal(),
                column: defined.name,
                extract: MetricSource::Run(|_, _| None),
                ..TIME_METRIC_DEFAULTS
            };
        }
        *TABLE.iter().find(|info| info.metric == self).expect("every metric has an entry")
    }

    /// Returns the value of the metric in a run.
    pub fn of_run(self, point: &Point, run: &RunResult) -> Option<f64> {
        match (self, self.info().extract) {
            (Self::Defined(defined), _) => run.program_metric(defined.name),
            (_, MetricSource::Summary(of)) => of(&run.summary),
            (_, MetricSource::Run(of)) => of(point, run),
        }
    }

    /// Returns the title of an axis that shows means of the metric.
    pub fn axis_title(self) -> String {
        let MetricInfo { title, unit, .. } = self.info();
        match self {
            Self::Fairness => format!("{title} (1: equal shares)"),
            _ if unit.is_empty() => title.to_owned(),
            _ => format!("{title} ({unit})"),
        }
    }

    /// Returns the title of the time axis of a distribution.
    pub fn time_axis(self) -> String {
        let info = self.info();
        match info.is_time_of_run {
            true => format!("{} (ms)", info.title.trim_start_matches("mean ")),
            false => "response time (ms)".to_owned(),
        }
    }

    /// Returns the title of the axis with the share of messages (or runs) that took longer than a given time.
    pub fn share_axis(self) -> &'static str {
        match self.info().is_time_of_run {
            true => "share of runs that took longer",
            false => "share of messages that took longer",
        }
    }

    /// Returns the worst possible value. It replaces a missing value where only the order of the values counts.
    pub fn worst_value(self) -> f64 {
        self.gain(f64::NEG_INFINITY)
    }

    /// Returns a description of runs that collapsed, or that have no value of the metric.
    pub fn collapse_description(self) -> &'static str {
        match self.info().needs_load {
            true => "some runs collapsed: they ended early or fell behind",
            false => "some runs have no value",
        }
    }

    /// Returns the largest difference that counts as zero, in the unit of the metric. For times it is about a
    /// nanosecond, because times are whole nanoseconds.
    pub fn resolution(self) -> f64 {
        match self {
            Self::Defined(_) => 0.0,
            _ if self.info().unit == "ms" => 1e-6,
            _ => 0.0,
        }
    }

    /// Returns by how much the first of two values is better, given the first value minus the second; negative if
    /// it is worse.
    pub fn gain(self, difference: f64) -> f64 {
        match self.info().better {
            Better::Less => -difference,
            Better::More => difference,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_messages_has_no_delivered_share() {
        let MetricSource::Summary(delivered) = Metric::Delivered.info().extract else {
            panic!("the delivered share is computed from the summary")
        };
        assert_eq!(delivered(&hol_measure::summarize(&[])), None);
    }

    #[test]
    fn every_name_is_read_as_its_metric() {
        for info in TABLE {
            let name: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
                serde::de::IntoDeserializer::into_deserializer(info.name);
            assert_eq!(Metric::deserialize(name), Ok(info.metric));
            assert_eq!(
                (Metric::from_name(info.name), info.metric.info().name),
                (Some(info.metric), info.name)
            );
        }
        assert_eq!(
            (Metric::from_name(METRICS[0]), Metric::from_name("speed")),
            (Some(Metric::default()), None)
        );
    }
}
