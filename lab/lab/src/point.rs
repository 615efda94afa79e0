//! One combination of the axes, with the value of every setting.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use hol_base::{Digester, Duration, Ratio, Seed};
use hol_measure::{RecordKind, nanoseconds};
use hol_network::NetworkSpec;
use hol_scenario::{MetricReader, Program, Root, RunError, Scenario};
use hol_stack::TransportSpec;
use hol_workloads::{HostSpec, Pace, WorkloadSpec};
use serde::{Deserialize, Serialize};

use crate::background::Background;
use crate::onward::Onward;
use crate::repetitions::Repetitions;
use crate::resolved_transport;
use crate::transport_options::is_transport_option;
use crate::worlds::WorldName;

/// A hash of everything that determines the results of a point's runs, including the version of this program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PointId(pub u64);

/// The key of a run: its point and its repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// The identifier of the point.
    pub point: PointId,
    /// Index of the repetition, from 0.
    pub repetition: u32,
}

/// One combination of the values of an experiment's axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    /// Identifier of the point. Two points whose results must be equal have the same identifier.
    pub id: PointId,
    /// Name of the experiment: that of its file without the extension.
    pub experiment: String,
    /// The name of the transport in figures and tables.
    pub label: String,
    /// The transport of the measured flow.
    #[serde(with = "resolved_transport")]
    pub transport: TransportSpec,
    /// Number of earlier transports in the experiment that equal this one. A transport that is listed twice is run
    /// twice, to show differences by chance.
    #[serde(default, skip_serializing_if = "is_first")]
    pub twin: u32,
    /// The swept keys with their values as written, in the order of the file.
    pub axes: Vec<(String, String)>,
    /// Number of messages in all repetitions together, if the smallest number of repetitions is performed.
    pub messages: u64,
    /// The number of repetitions, or its range.
    pub repetitions: Repetitions,
    /// The precision at which repetitions end: the largest half width of the mean's confidence interval, as a
    /// share of the mean; `None` without such a limit.
    pub precision: Option<Ratio>,
    /// Length of the intervals in which the deliveries of a run are counted; `None` if they are not counted.
    #[serde(
        default,
        rename = "timeline_ns",
        skip_serializing_if = "Option::is_none",
        with = "nanoseconds::optional"
    )]
    pub timeline: Option<Duration>,
    /// The seed of the experiment.
    pub seed: u64,
    /// The network.
    pub network: NetworkSpec,
    /// Properties of nodes other than their links.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, HostSpec>,
    /// The workload of the measured flow.
    pub workload: WorkloadSpec,
    /// The background traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<Background>,
    /// The requests that servers send to other servers before they answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub onward: Vec<Onward>,
    /// The user's programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// The file system from which nodes take programs and the files that they need.
    #[serde(default, skip_serializing_if = "is_host")]
    pub root: Root,
    /// The world that performs the runs: the model, a kernel, or a real network.
    #[serde(default, skip_serializing_if = "WorldName::is_default")]
    pub world: WorldName,
    /// What the results may depend on besides the settings, such as the version of the kernel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provenance: String,
}

impl Point {
    /// Returns the point with every default filled in, and with the identifier of its settings.
    pub(crate) fn with_defaults(mut self) -> Self {
        self.workload = self.workload.with_defaults();
        self.background = self.background.into_iter().map(Background::with_defaults).collect();
        self.timeline = self.timeline.or_else(|| self.timeline_of_disruptions());
        self.id = self.identity();
        self
    }

    /// Returns the length of the intervals in which deliveries are counted to draw the goodput around a disruption of
    /// the path; `None` without disruptions. It is a fiftieth of the time before the first disruption, or more if that
    /// is too short for five messages. In a run with a given message rate there are at most 2,000 intervals, because
    /// each repetition stores them.
    fn timeline_of_disruptions(&self) -> Option<Duration> {
        const MESSAGES: f64 = 5.0;
        const MAX_INTERVALS: f64 = 2000.0;
        let disruptions = self.network.disruptions();
        let first =
            disruptions.iter().map(|one| one.at.as_secs_f64()).filter(|at| *at > 0.0).reduce(f64::min)?;
        let rate = self.offered_rate();
        let of_messages = if rate > 0.0 { MESSAGES / rate } else { 0.0 };
        let lasts = if rate > 0.0 { self.messages_in(0) as f64 / rate } else { 0.0 };
        let interval = (first / 50.0).clamp(0.01, 10.0).max(of_messages).max(lasts / MAX_INTERVALS);
        let power = 10f64.powf(interval.log10().floor());
        let round = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        round.into_iter().find(|step| *step >= interval * 0.999).map(Duration::from_secs_f64)
    }

    /// Returns the point with the full name and the provenance of `world`. Fails if that world is missing or
    /// does not support the point.
    pub fn in_named_world(mut self, world: &WorldName) -> Result<Self, RunError> {
        let there = world.open()?;
        self.world = WorldName::of(&there.name(), "");
        self.provenance = there.provenance()?;
        self.id = self.identity();
        there.check(&self.scenario(0))?;
        Ok(self)
    }

    /// Returns the identifier of the point's settings in this version of the program.
    pub fn identity(&self) -> PointId {
        let Self {
            messages,
            repetitions,
            timeline,
            seed,
            network,
            workload,
            hosts,
            background,
            onward,
            programs,
            ..
        } = self;
        // If the world is missing, stored results keep their id.
        let Ok(world) = self.world.open() else { return self.id };
        let transport = world.recorded_settings(&self.scenario(0));
        let min = u64::from(repetitions.min);
        let mut decides = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "transport": transport,
            // The id depends on the length of a repetition and not on their number, so that results can be extended by further repetitions.
            "messages": [messages / min, messages % min],
            "seed": seed,
            "network": network,
            "workload": workload,
        });
        // The timeline decides what is recorded, so runs without it cannot be reused.
        if let Some(part) = timeline {
            decides["timeline_ns"] = serde_json::json!(part.as_nanos());
        }
        if !background.is_empty() {
            decides["background"] = serde_json::json!(background);
        }
        if !onward.is_empty() {
            decides["onward"] = serde_json::json!(onward);
        }
        if !hosts.is_empty() {
            decides["hosts"] = serde_json::json!(hosts);
        }
        if !programs.is_empty() {
            decides["programs"] = serde_json::json!(programs);
        }
        if self.twin > 0 {
            decides["twin"] = serde_json::json!(self.twin);
        }
        if !self.world.is_default() {
            decides["world"] = serde_json::json!([self.world, self.provenance]);
        }
        let mut digester = Digester::new();
        digester.add_octets(decides.to_string().as_bytes());
        PointId(digester.finish().0 as u64)
    }

    /// Returns the number of messages in one repetition; the sum over all repetitions is exactly `messages`.
    pub fn messages_in(&self, repetition: u32) -> u64 {
        let min = u64::from(self.repetitions.min);
        self.messages / min + u64::from(u64::from(repetition) < self.messages % min)
    }

    /// Returns the largest number of repetitions; without a precision it is also the smallest.
    pub fn max_repetitions(&self) -> u32 {
        if self.precision.is_some() { self.repetitions.max } else { self.repetitions.min }
    }

    /// Returns the seed of a repetition. It depends only on the experiment's seed and the repetition, so that all
    /// transports and points use common random numbers.
    pub fn seed_of(&self, repetition: u32) -> Seed {
        Seed(self.seed).derive("repetition").derive_for_index(repetition.into())
    }

    /// Returns the offered rate in messages per second if messages have a schedule; otherwise 0.
    pub fn offered_rate(&self) -> f64 {
        let by_pace = match self.workload.kind.workload().pace() {
            Pace::Interval(interval) => 1.0 / interval.as_secs_f64(),
            Pace::Accepted | Pace::Replied => 0.0,
        };
        self.workload.rate().map_or(by_pace, |rate| rate.per_second())
    }

    /// Returns whether the path itself changes during a run, by events, a trace or a handover.
    pub fn path_changes(&self) -> bool {
        !self.network.events.is_empty() || self.network.trace.is_some() || self.network.handover.is_some()
    }

    /// Returns whether a link goes down during a run, or the client moves.
    pub fn is_disrupted(&self) -> bool {
        self.network.is_disrupted()
    }

    /// Returns the number of background flows that last as long as the workload. Flows with a fixed number of
    /// messages do not count.
    pub fn competing_flow_count(&self) -> usize {
        let lasting = self.background.iter().filter(|entry| entry.messages.is_none());
        lasting.map(|entry| usize::from(entry.count)).sum()
    }

    /// Returns whether metrics of flows give more information than response times. For transactions alone the throughput equals the rate,
    /// and for pages it depends on the user's pauses.
    pub fn has_flow_metrics(&self) -> bool {
        let kind = self.workload.record_kind();
        kind.has_schedule() && (!kind.has_reply() || !self.background.is_empty())
    }

    /// Returns the metrics that programs report, by name.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, &MetricReader)> {
        self.programs
            .iter()
            .flat_map(|program| &program.metrics)
            .map(|(name, reading)| (name.as_str(), reading))
    }

    /// Returns whether the records are frames, which have a playout time.
    pub fn has_playout_times(&self) -> bool {
        self.workload.record_kind() == RecordKind::Frame
    }

    /// Returns the network of a repetition; a random start of its trace is drawn from the repetition's seed.
    pub fn network_of(&self, repetition: u32) -> Cow<'_, NetworkSpec> {
        self.network.of_run(self.seed_of(repetition))
    }

    /// Returns the scenario of a repetition.
    pub fn scenario(&self, repetition: u32) -> Scenario {
        Scenario {
            network: self.network_of(repetition).into_owned(),
            hosts: self.hosts.clone(),
            transport: self.transport.clone(),
            workload: self.workload.clone(),
            messages: self.messages_in(repetition),
            background: self.background.iter().map(|entry| entry.to_scenario(&self.transport)).collect(),
            onward: self.onward.iter().map(|entry| entry.to_scenario(&self.transport)).collect(),
            programs: self.programs.clone(),
            root: self.root.clone(),
        }
    }

    /// Returns whether another point of the experiment has the same values of the axes. Options that only one of the
    /// two transports has are ignored.
    pub fn has_conditions_of(&self, other: &Self) -> bool {
        let agrees = |(key, value): &(String, String)| {
            other.axis_value(key).map_or_else(|| is_transport_option(key), |known| known == value)
        };
        let is_option = |(key, _): &&(String, String)| self.axis_value(key).is_none();
        self.experiment == other.experiment
            && self.axes.iter().all(agrees)
            && other.axes.iter().filter(is_option).all(|(key, _)| is_transport_option(key))
    }

    /// Returns the value of a swept key, as written.
    pub fn axis_value(&self, key: &str) -> Option<&str> {
        self.axes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_first(twin: &u32) -> bool {
    *twin == 0
}

fn is_host(root: &Root) -> bool {
    *root == Root::Host
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.experiment, self.label)?;
        self.axes.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

impl fmt::Display for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
impl fmt::Debug for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl From<PointId> for String {
    fn from(id: PointId) -> String {
        id.to_string()
    }
}
impl TryFrom<String> for PointId {
    type Error = std::num::ParseIntError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        u64::from_str_radix(&text, 16).map(Self)
    }
}
