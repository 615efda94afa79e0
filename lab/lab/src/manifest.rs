//! What a result directory says about itself: enough to understand it, to go on with it, and to check it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use hol_base::Duration;
use hol_measure::nanoseconds;
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Keep};
use crate::figure::FigureWish;
use crate::point::Point;
use crate::shard::Shard;

/// The layout of result directories; a change of it is a new number.
pub const FORMAT: u32 = 3;

/// `manifest.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// The layout of the directory.
    pub format: u32,
    /// The program's version.
    pub version: String,
    /// The command line that began it.
    pub command: Vec<String>,
    /// The study, if it is one.
    pub study: Option<String>,
    /// One line for people.
    pub title: String,
    /// Where it ran: `"model"`, or `"kernel:"` with the kernel's release.
    pub world: String,
    /// What that ran on, as far as results may depend on it; empty where this program decides everything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provenance: String,
    /// The part of all runs that it has; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Which records of single messages are kept.
    pub records: Keep,
    /// How often runs are looked at for their time series, if they are.
    #[serde(
        default,
        rename = "series_ns",
        skip_serializing_if = "Option::is_none",
        with = "nanoseconds::if_any"
    )]
    pub series: Option<Duration>,
    /// The machine that began it.
    pub host: Host,
    /// Name and title of each experiment.
    pub experiments: Vec<(String, String)>,
    /// What the writers of the experiments want drawn, by experiment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Vec<FigureWish>>,
    /// Every point with every setting, defaults and stacks included.
    pub points: Vec<Point>,
}

/// The machine: results do not depend on it, times do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The processor's name.
    pub cpu: String,
    /// Cores that the program may use.
    pub cores: usize,
    /// The operating system and its version.
    pub os: String,
    /// The compiler that made the program.
    pub rustc: String,
    /// Memory in octets; 0 if unknown.
    pub memory: u64,
}

fn wishes(experiments: &[Experiment]) -> BTreeMap<String, Vec<FigureWish>> {
    let wished = experiments.iter().filter(|experiment| !experiment.figures.is_empty());
    wished.map(|experiment| (experiment.name.clone(), experiment.figures.clone())).collect()
}

impl Manifest {
    /// The manifest of `experiments`, run by the command line `command`.
    pub fn new(title: &str, study: Option<&str>, experiments: &[Experiment], command: Vec<String>) -> Self {
        let keep = experiments.iter().any(|e| e.records == Keep::All);
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            study: study.map(str::to_owned),
            title: title.to_owned(),
            world: each_once(experiments, |point| point.world.to_string()),
            provenance: each_once(experiments, |point| point.provenance.clone()),
            shard: None,
            records: if keep { Keep::All } else { Keep::None },
            series: experiments.iter().filter_map(|e| e.series).min(),
            host: Host::this(),
            experiments: experiments.iter().map(|e| (e.name.clone(), e.title.clone())).collect(),
            figures: wishes(experiments),
            points: experiments.iter().flat_map(|e| e.points.clone()).collect(),
        }
    }

    /// Whether both ask the same, so that one can go on with the other's runs.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        let ask = |m: &Self| {
            let points = m.points.iter().map(|p| (p.id, p.experiment.clone(), p.repetitions, p.precision));
            (m.format, m.version.clone(), m.shard, m.records, m.series, points.collect::<Vec<_>>())
        };
        ask(self) == ask(other)
    }
}

/// What `of` says of all points, each once.
fn each_once(experiments: &[Experiment], of: impl Fn(&Point) -> String) -> String {
    let said: BTreeSet<String> = experiments.iter().flat_map(|e| &e.points).map(of).collect();
    said.into_iter().collect::<Vec<_>>().join(", ")
}

impl Host {
    /// This machine.
    pub fn this() -> Self {
        let line = |file: &str, key: &str| {
            let text = fs::read_to_string(file).ok()?;
            let value = text.lines().find_map(|line| line.strip_prefix(key))?;
            Some(value.trim_start_matches([' ', '\t', ':', '=']).trim().trim_matches('"').to_owned())
        };
        let kernel = line("/proc/sys/kernel/osrelease", "").unwrap_or_default();
        let memory = line("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
        Self {
            cpu: line("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            os: line("/etc/os-release", "PRETTY_NAME")
                .map_or_else(|| std::env::consts::OS.to_owned(), |name| format!("{name}, kernel {kernel}")),
            rustc: env!("HOL_RUSTC").to_owned(),
            memory: memory.unwrap_or(0) * 1024_u64,
        }
    }
}
