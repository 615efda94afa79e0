//! One combination of the axes, with every setting settled.

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
use crate::settled;
use crate::worlds::WorldName;

/// Stands for everything that decides what a point's runs measure, this program's version included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PointId(pub u64);

/// One run of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// The point.
    pub point: PointId,
    /// Which of its repetitions, from 0.
    pub repetition: u32,
}

/// One combination of the axes of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    /// The same for two points that measure the same.
    pub id: PointId,
    /// The experiment's name: its file without the ending.
    pub experiment: String,
    /// What figures and tables call the transport.
    pub label: String,
    /// The transport.
    #[serde(with = "settled")]
    pub transport: TransportSpec,
    /// How often the same transport stands before it: it is run again, to see what differs by chance.
    #[serde(default, skip_serializing_if = "is_first")]
    pub twin: u32,
    /// The swept keys with their values as written, in the order of the file.
    pub axes: Vec<(String, String)>,
    /// Messages over the least number of repetitions.
    pub messages: u64,
    /// How often it is repeated.
    pub repetitions: Repetitions,
    /// Stop repeating when the half width of the mean's interval is this share of the mean.
    pub precision: Option<Ratio>,
    /// Keep what is delivered in each part of a run that is so long.
    #[serde(
        default,
        rename = "timeline_ns",
        skip_serializing_if = "Option::is_none",
        with = "nanoseconds::if_any"
    )]
    pub timeline: Option<Duration>,
    /// The seed of the experiment.
    pub seed: u64,
    /// The network.
    pub network: NetworkSpec,
    /// What nodes have beside their links.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, HostSpec>,
    /// What the application does.
    pub workload: WorkloadSpec,
    /// What goes on beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<Background>,
    /// What servers ask of others before they answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub onward: Vec<Onward>,
    /// The user's programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// Where these come from.
    #[serde(default, skip_serializing_if = "is_host")]
    pub root: Root,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "WorldName::is_default")]
    pub world: WorldName,
    /// What that runs on, as far as results may depend on it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provenance: String,
}

impl Point {
    /// The point with every default spelt out, and the id that belongs to its settings.
    pub(crate) fn settled(mut self) -> Self {
        self.workload = self.workload.settled();
        self.background = self.background.into_iter().map(Background::settled).collect();
        self.id = self.identity();
        self
    }

    /// The point in a world that is there, under its whole name and with what it runs on; refused if that cannot do it.
    pub(crate) fn placed(mut self, world: &WorldName) -> Result<Self, RunError> {
        let there = world.open()?;
        self.world = WorldName::of(&there.name(), "");
        self.provenance = there.provenance()?;
        self.id = self.identity();
        there.check(&self.scenario(0))?;
        Ok(self)
    }

    /// The id that these settings have in this version of the program.
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
        // What is kept of a world that is not there keeps its name.
        let Ok(world) = self.world.open() else { return self.id };
        let transport = world.decides(&self.scenario(0));
        let least = u64::from(repetitions.least);
        let mut decides = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "transport": transport,
            // How long each repetition is, and not how many there are: more of them go on with the first.
            "messages": [messages / least, messages % least],
            "seed": seed,
            "network": network,
            "workload": workload,
        });
        // It decides what is kept, and runs without it do not have it.
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

    /// Messages of one repetition: the total over all of them is exact.
    pub fn messages_in(&self, repetition: u32) -> u64 {
        let least = u64::from(self.repetitions.least);
        self.messages / least + u64::from(u64::from(repetition) < self.messages % least)
    }

    /// How often it is repeated at most: without a precision nothing asks for more than the least.
    pub fn most_repetitions(&self) -> u32 {
        if self.precision.is_some() { self.repetitions.most } else { self.repetitions.least }
    }

    /// The seed of a repetition. It depends on nothing else: transports and points meet common random numbers.
    pub fn seed_of(&self, repetition: u32) -> Seed {
        Seed(self.seed).derive("repetition").derive_index(repetition.into())
    }

    /// Messages a second where time makes them due, be it by a rate or by a list; 0 where nothing does.
    pub fn offered_rate(&self) -> f64 {
        let by_pace = match self.workload.kind.workload().pace() {
            Pace::Every(interval) => 1.0 / interval.as_secs_f64(),
            Pace::Taken | Pace::Replied => 0.0,
        };
        self.workload.rate().map_or(by_pace, |rate| rate.per_second())
    }

    /// Whether the path itself changes during a run, by events, a trace or a handover.
    pub fn path_changes(&self) -> bool {
        !self.network.events.is_empty() || self.network.trace.is_some() || self.network.handover.is_some()
    }

    /// Whether a link goes down during a run, or the client moves.
    pub fn is_disrupted(&self) -> bool {
        !self.network.disruptions().is_empty()
    }

    /// How many flows of the background last as long as the workload; those of so many messages do not.
    pub fn competitors(&self) -> usize {
        let lasting = self.background.iter().filter(|entry| entry.messages.is_none());
        lasting.map(|entry| usize::from(entry.count)).sum()
    }

    /// Whether its flows as a whole say more than its response times: of transactions alone, the throughput is the rate, and of
    /// pages it is that of whoever reads them.
    pub fn tells_of_flows(&self) -> bool {
        let kind = self.workload.record_kind();
        kind.has_schedule() && (!kind.has_reply() || !self.background.is_empty())
    }

    /// The metrics that programs tell, by name.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, &MetricReader)> {
        self.programs
            .iter()
            .flat_map(|program| &program.metrics)
            .map(|(name, reading)| (name.as_str(), reading))
    }

    /// Whether its records are frames, each with a time to be played.
    pub fn is_played(&self) -> bool {
        self.workload.record_kind() == RecordKind::Frame
    }

    /// What the world is asked to run.
    pub fn scenario(&self, repetition: u32) -> Scenario {
        Scenario {
            network: self.network.clone(),
            hosts: self.hosts.clone(),
            transport: self.transport.clone(),
            workload: self.workload.clone(),
            messages: self.messages_in(repetition),
            background: self.background.iter().map(|entry| entry.beside(&self.transport)).collect(),
            onward: self.onward.iter().map(|entry| entry.beside(&self.transport)).collect(),
            programs: self.programs.clone(),
            root: self.root.clone(),
        }
    }

    /// The value of a swept key, as written.
    pub fn axis(&self, key: &str) -> Option<&str> {
        self.axes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
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
