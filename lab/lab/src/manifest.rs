//! The manifest of a result directory: what is needed to understand, continue and verify it.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, mem};

use hol_base::Duration;
use hol_measure::nanoseconds;
use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::experiment_file::RecordsKept;
use crate::figure::FigureRequest;
use crate::origin::Origin;
use crate::point::Point;
use crate::shard::Shard;
use crate::shared_events::{self, SharedEvents};
use crate::study;

/// The version of the layout of result directories, which is increased with every change of the layout.
pub const FORMAT: u32 = 4;

/// The oldest layout that can still be read, in which each point has its own events.
pub(crate) const OLDEST_FORMAT: u32 = 3;

/// The contents of `manifest.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout of the result directory.
    pub format: u32,
    /// Version of hol.
    pub version: String,
    /// Command line that created the directory.
    pub command: Vec<String>,
    /// The program and the files that it read.
    #[serde(default, skip_serializing_if = "Origin::is_unknown")]
    pub origin: Origin,
    /// Name of the study to which the experiments belong; `None` if they belong to none.
    pub study: Option<String>,
    /// Title of all experiments together, one line.
    pub title: String,
    /// The world, such as `"model"`, or `"kernel:"` with the kernel's release; several are separated by commas.
    pub world: String,
    /// The kernel, tools and hosts on which results may depend; empty if they depend only on hol's version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provenance: String,
    /// The part of the plan that this directory contains; `None` for the whole plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Whether the records of single messages are kept.
    pub records: RecordsKept,
    /// Sampling interval of time series; `None` if none are recorded.
    #[serde(
        default,
        rename = "series_ns",
        skip_serializing_if = "Option::is_none",
        with = "nanoseconds::optional"
    )]
    pub series: Option<Duration>,
    /// The machine that created the directory.
    pub host: Host,
    /// Name and title of each experiment.
    pub experiments: Vec<(String, String)>,
    /// The figures that each experiment requests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Vec<FigureRequest>>,
    /// Every point with the value of every setting, including defaults and stacks.
    pub points: Vec<Point>,
    /// The long lists of events that several points share. `manifest.json` contains them once instead of with each
    /// point; in memory this field is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_events: Vec<SharedEvents>,
}

/// A description of the machine, which influences speeds but not results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The model of the processor.
    pub cpu: String,
    /// The number of cores available to the program.
    pub cores: usize,
    /// The operating system and its version.
    pub os: String,
    /// The version of the compiler with which the program was built.
    pub rustc: String,
    /// Memory in octets; 0 if unknown.
    pub memory: u64,
}

fn requested_figures(experiments: &[Experiment]) -> BTreeMap<String, Vec<FigureRequest>> {
    let wished = experiments.iter().filter(|experiment| !experiment.figures.is_empty());
    wished.map(|experiment| (experiment.name.clone(), experiment.figures.clone())).collect()
}

impl Manifest {
    /// Creates the manifest of `experiments`, which the command line `command` runs.
    pub fn new(title: &str, study: Option<&str>, experiments: &[Experiment], command: Vec<String>) -> Self {
        let keep = experiments.iter().any(|e| e.records == RecordsKept::All);
        let files = match study {
            Some(study) => study::hashes(study),
            None => experiments.iter().flat_map(|e| e.input_digests.clone()).collect(),
        };
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            origin: Origin::of_this_program(files),
            study: study.map(str::to_owned),
            title: title.to_owned(),
            world: distinct(experiments, |point| point.world.to_string()),
            provenance: distinct(experiments, |point| point.provenance.clone()),
            shard: None,
            records: if keep { RecordsKept::All } else { RecordsKept::None },
            series: experiments.iter().filter_map(|e| e.series).min(),
            host: Host::current(),
            experiments: experiments.iter().map(|e| (e.name.clone(), e.title.clone())).collect(),
            figures: requested_figures(experiments),
            points: experiments.iter().flat_map(|e| e.points.clone()).collect(),
            shared_events: Vec::new(),
        }
    }

    /// Returns the text of `manifest.json`.
    pub(crate) fn to_json(&self) -> String {
        let mut stored = Self { format: FORMAT, ..self.clone() };
        stored.shared_events = shared_events::extract(&mut stored.points);
        serde_json::to_string_pretty(&stored).expect("a manifest can be serialised")
    }

    /// Parses the text of `manifest.json`.
    pub(crate) fn from_json(text: &[u8]) -> serde_json::Result<Self> {
        let mut manifest: Self = serde_json::from_slice(text)?;
        let Self { points, shared_events, .. } = &mut manifest;
        shared_events::restore(points, mem::take(shared_events));
        Ok(manifest)
    }

    /// Returns whether both manifests describe the same runs, so that one can be continued with the other.
    pub(crate) fn describes_same_runs(&self, other: &Self) -> bool {
        let ask = |m: &Self| {
            let points = m.points.iter().map(|p| (p.id, p.experiment.clone(), p.repetitions, p.precision));
            (m.format, m.version.clone(), m.shard, m.records, m.series, points.collect::<Vec<_>>())
        };
        ask(self) == ask(other)
    }
}

/// Returns the distinct values of `of` over all points as a text, separated by commas.
fn distinct(experiments: &[Experiment], of: impl Fn(&Point) -> String) -> String {
    let said: BTreeSet<String> = experiments.iter().flat_map(|e| &e.points).map(of).collect();
    said.into_iter().collect::<Vec<_>>().join(", ")
}

impl Host {
    /// Returns a description of this machine.
    pub fn current() -> Self {
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
