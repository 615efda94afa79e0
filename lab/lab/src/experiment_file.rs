//! The keys of an experiment file, with one value for each swept key.

use std::collections::BTreeMap;
use std::ops::Range;

use hol_base::{Duration, Ratio};
use hol_network::NetworkSpec;
use hol_scenario::{Program, Root, ScenarioError};
use hol_workloads::{HostSpec, Simco, WorkloadSpec};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::DeTable;

use crate::axes::Assignment;
use crate::background::Background;
use crate::combination::apply_and_resolve;
use crate::dotted_key::span_of_named_key;
use crate::error::InputError;
use crate::figure;
use crate::named_transport::NamedTransport;
use crate::onward::Onward;
use crate::permission::Permission;
use crate::point::{Point, PointId};
use crate::programs;
use crate::repetitions::Repetitions;
use crate::series::SHORTEST_INTERVAL;
use crate::size_file;
use crate::source::Source;
use crate::traces;
use crate::worlds::WorldName;

/// The default number of messages in all repetitions together.
const DEFAULT_MESSAGES: u64 = 10_000;

/// The largest number of runs; a larger number is considered a mistake, and the list of runs would not fit into
/// memory.
const MAX_RUNS: u64 = 1_000_000;

/// The shortest interval of a timeline; with shorter intervals there would be more intervals than messages.
const MIN_TIMELINE_PART: Duration = Duration::from_millis(1);

/// Which records of single messages are kept in addition to the summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordsKept {
    /// No records, only a digest of them.
    #[default]
    None,
    /// The records of all messages of every run, including the background.
    All,
}

/// The contents of an experiment file, one value for each swept key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Experiment", description = "An experiment of headofline, for `hol run`.")]
pub(crate) struct ExperimentFile {
    /// Report title. Default: the file's name.
    pub(crate) title: Option<String>,
    /// Seed of all random numbers; it determines a run, except in the live world. Default 1.
    #[serde(default = "default_seed")]
    seed: u64,
    /// Messages per point, divided among all repetitions (for a range: among its minimum); not for programs. Default 10,000.
    #[schemars(with = "Option<u64>")]
    messages: Option<Spanned<u64>>,
    /// Runs per point, each with its own seed. In a range such as "5..40" `precision` decides when to stop. Default 10.
    #[serde(default = "default_repetitions")]
    #[schemars(with = "Option<Repetitions>")]
    repetitions: Spanned<Repetitions>,
    /// Repeat until the half width of the mean's 95 % confidence interval is at most this share of the mean; needs a
    /// range of `repetitions`.
    #[schemars(with = "Option<Ratio>")]
    precision: Option<Spanned<Ratio>>,
    /// Count the deliveries in each interval of this length, for figures over time.
    #[schemars(with = "Option<Duration>")]
    timeline: Option<Spanned<Duration>>,
    /// Message records to keep, as Parquet files. Default none.
    #[serde(default)]
    pub(crate) records: RecordsKept,
    /// Record congestion windows, RTTs and queues at this interval, in Parquet files.
    #[schemars(with = "Option<Duration>")]
    pub(crate) series: Option<Spanned<Duration>>,
    /// World: `"model"` (simulated); `"kernel"` (Linux in a virtual machine), `"kernel:6.1"` (that version), `"kernel:uml"` (User-Mode
    /// Linux); `"live"` (loopback), `"live:namespaces"`, `"live:HOST"` (to that host), `"live:server=HOST,cross=OTHER"` (hosts by node),
    /// `"live:HOST via ROUTER"`. Default `model`.
    #[serde(default = "default_world")]
    #[schemars(with = "Option<String>")]
    pub(crate) world: Spanned<WorldName>,
    /// The transports to compare.
    #[schemars(with = "Vec<NamedTransport>")]
    pub(crate) transports: Spanned<Vec<NamedTransport>>,
    /// Further figures of the report.
    #[serde(default, rename = "figure")]
    pub(crate) figures: Vec<figure::FigureTable>,
    /// Path of an ns script that defines the network, relative to this file.
    // Only a swept topology arrives here; otherwise it is read before, and removed.
    #[schemars(with = "Option<String>")]
    topology: Option<Spanned<IgnoredAny>>,
    /// Network. Default: a link of 100 Mbit/s with a delay of 10 ms.
    #[serde(default = "default_network")]
    #[schemars(with = "Option<NetworkSpec>")]
    pub(crate) network: Spanned<NetworkSpec>,
    /// Properties of nodes, by the name of the node.
    #[serde(default = "no_hosts")]
    #[schemars(with = "Option<BTreeMap<String, HostSpec>>")]
    hosts: Spanned<BTreeMap<String, HostSpec>>,
    /// The application, its messages and their schedule. Default `simco`.
    #[schemars(with = "Option<WorkloadSpec>")]
    workload: Option<Spanned<WorkloadSpec>>,
    /// Flows that compete with the measured one.
    #[serde(default)]
    #[schemars(with = "Vec<Background>")]
    background: Vec<Spanned<Background>>,
    /// Requests that a server sends to others before it replies.
    #[serde(default)]
    #[schemars(with = "Vec<Onward>")]
    onward: Vec<Spanned<Onward>>,
    /// Unmodified programs on nodes. Kernel world only.
    #[serde(default, rename = "program")]
    #[schemars(with = "Vec<Program>")]
    programs: Vec<Spanned<Program>>,
    /// Source of programs and their files: `"host"` (this machine), a directory or its `.tar` archive. Default `host`.
    #[serde(default = "host_root")]
    #[schemars(with = "Option<String>")]
    root: Spanned<Root>,
    /// Axes: a list of values for each dotted key, such as `network.loss`; every combination of values is a point.
    // Axes are removed before; named here so that errors list them as known.
    #[serde(rename = "sweep")]
    #[schemars(with = "Option<Axes>")]
    _sweep: Option<IgnoredAny>,
    /// Axes whose lists advance together: the n-th values form a point.
    #[serde(rename = "zip")]
    #[schemars(with = "Option<Axes>")]
    _zip: Option<IgnoredAny>,
}

/// One or several groups of axes: `{ "network.loss" = ["0%", "1%"], seed = [1, 2] }`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "for the schema")]
enum Axes {
    /// Lists of values, by dotted key.
    One(BTreeMap<String, Vec<serde_json::Value>>),
    /// Several groups, each of which is combined with all others.
    Several(Vec<BTreeMap<String, Vec<serde_json::Value>>>),
}

const fn default_seed() -> u64 {
    1
}
fn default_repetitions() -> Spanned<Repetitions> {
    Spanned::new(0..0, Repetitions::fixed(10))
}
fn default_world() -> Spanned<WorldName> {
    Spanned::new(0..0, WorldName::default())
}
fn default_network() -> Spanned<NetworkSpec> {
    Spanned::new(0..0, NetworkSpec::default())
}
fn host_root() -> Spanned<Root> {
    Spanned::new(0..0, Root::Host)
}
fn no_hosts() -> Spanned<BTreeMap<String, HostSpec>> {
    Spanned::new(0..0, BTreeMap::new())
}

impl ExperimentFile {
    /// Lets equal transports of this file and `other` share their options in memory. Otherwise these would occupy
    /// most of the memory of a file.
    pub(crate) fn share_transports(&mut self, other: &Self) {
        for (own, other) in self.transports.get_mut().iter_mut().zip(other.transports.get_ref()) {
            if own.spec == other.spec {
                own.spec = other.spec.clone();
            }
        }
    }

    /// Checks that the file uses only what it may use of this machine. Otherwise returns the position of the part that
    /// is not permitted, and the problem.
    pub(crate) fn check_permission(&self, permission: &Permission) -> Result<(), (Range<usize>, String)> {
        const PROGRAMS_REFUSED: &str = "programs would have access to files of the server's machine; use a workload instead, or ask the operator \
            to start the server with --programs";
        let own_root = (*self.root.get_ref() != Root::Host).then(|| self.root.span());
        let program = self.programs.first().map(|program| program.span());
        if let Some(span) = program.or(own_root).filter(|_| !permission.programs) {
            return Err((span, PROGRAMS_REFUSED.to_owned()));
        }
        permission.check_world(self.world.get_ref()).map_err(|problem| (self.world.span(), problem))?;
        permission.check_network(self.network.get_ref()).map_err(|problem| (self.network.span(), problem))
    }

    /// Checks the values beyond what the types of the keys check. If there is a mistake, returns its position and
    /// the problem.
    pub(crate) fn check(&self) -> Result<(), (Range<usize>, String)> {
        let repetitions = *self.repetitions.get_ref();
        let min = u64::from(repetitions.min);
        let messages = self.messages();
        if self.runs_programs()
            && let Some(given) = &self.messages
        {
            let problem = "`messages` does not apply to programs, which run once per repetition; remove it";
            return Err((given.span(), problem.to_owned()));
        }
        if messages < min {
            let fewer = match messages {
                0 => String::new(),
                _ => format!(
                    ", or fewer repetitions (repetitions = {messages} in a file, --repetitions {messages} for hol compare)"
                ),
            };
            let problem = format!(
                "{messages} messages are too few for {min} repetitions; use at least {min} messages{fewer}"
            );
            return Err((span(self.messages.as_ref()), problem));
        }
        if let Some(part) = self.timeline.as_ref().filter(|part| *part.get_ref() < MIN_TIMELINE_PART) {
            let problem = format!("`timeline` must be at least {MIN_TIMELINE_PART}");
            return Err((part.span(), problem));
        }
        if let Some(interval) =
            self.series.as_ref().filter(|interval| *interval.get_ref() < SHORTEST_INTERVAL)
        {
            let problem = format!("`series` must be at least {SHORTEST_INTERVAL}; write series = \"10ms\"");
            return Err((interval.span(), problem));
        }
        if let Some(topology) = &self.topology {
            let problem = "a topology cannot be swept; sweep the keys that differ, such as network.links.0.delay, or \
                           write an experiment for each script";
            return Err((topology.span(), problem.to_owned()));
        }
        if self.transports.get_ref().is_empty() {
            let problem = "no transports; write transports = [\"tcp\", \"sctp:streams=8\"]".to_owned();
            return Err((self.transports.span(), problem));
        }
        if let Some(label) = self.shared_label() {
            let problem = format!(
                "two transports are called {label:?}; remove one, or give it another label in the file, as in \
                 {{ spec = {label:?}, label = \"another\" }}"
            );
            return Err((self.transports.span(), problem));
        }
        match &self.precision {
            None if repetitions.min < repetitions.max => {
                let problem = format!(
                    "`repetitions` is a range, but no `precision` decides when to stop; add precision = \"5%\", or write \
                     repetitions = {min}"
                );
                Err((self.repetitions.span(), problem))
            }
            Some(precision) if repetitions.min == repetitions.max => {
                let problem =
                    "a `precision` needs a range of repetitions: write repetitions = \"5..40\"".to_owned();
                Err((precision.span(), problem))
            }
            Some(precision) if precision.get_ref().is_zero() || repetitions.min < 2 => {
                let problem = "`precision` must be above 0% and needs at least two repetitions, from which the confidence interval is computed".to_owned();
                Err((precision.span(), problem))
            }
            _ => Ok(()),
        }
    }

    /// Makes the paths in the file absolute, which are relative to the file. Also reads the traces, distributions
    /// and sizes that it names.
    pub(crate) fn with_absolute_paths(
        mut self,
        written: &DeTable<'_>,
        step: &[Assignment<'_>],
        source: &Source,
    ) -> Result<Self, InputError> {
        self.programs.iter_mut().try_for_each(|program| programs::resolve_files(program, source))?;
        programs::resolve_root(&mut self.root, source)?;
        traces::read_traces(&mut self.network, written, step, source)?;
        traces::read_distributions(&mut self.network, source)?;
        self.read_sizes(written, source)?;
        Ok(self)
    }

    /// Reads the files of message sizes that workloads name; the sizes become part of the point.
    fn read_sizes(&mut self, written: &DeTable<'_>, source: &Source) -> Result<(), InputError> {
        let own = self.workload.iter_mut().map(|workload| (workload.span(), workload.as_mut()));
        let background = self.background.iter_mut().map(|flows| (flows.span(), &mut flows.as_mut().workload));
        let onward =
            self.onward.iter_mut().map(|requests| (requests.span(), &mut requests.as_mut().workload));
        for (at, (place, workload)) in own.chain(background).chain(onward).enumerate() {
            let is_own = at == 0 && written.contains_key("workload");
            for (key, sizes) in workload.sizes_mut() {
                let named =
                    is_own.then(|| span_of_named_key(written, "workload", &format!("`{key}`"))).flatten();
                let place = named.unwrap_or_else(|| place.clone());
                let refuse = |problem| {
                    let problem = format!("`{key}`: {problem}");
                    match is_own {
                        true => source.error_of(&format!("workload.{key}"), &place, problem),
                        false => source.error(&place, problem),
                    }
                };
                size_file::read(sizes, source, refuse)?;
            }
        }
        Ok(())
    }

    /// Checks that the points of all `files` together have at most [`MAX_RUNS`] runs.
    pub(crate) fn check_runs(&self, files: &[Self], source: &Source) -> Result<(), InputError> {
        let runs =
            |file: &Self| u64::from(file.repetitions.get_ref().max) * file.transports.get_ref().len() as u64;
        let runs = files.iter().map(runs).fold(0, u64::saturating_add);
        if runs <= MAX_RUNS {
            return Ok(());
        }
        let problem = format!(
            "all points together have {runs} runs, but at most {MAX_RUNS} are allowed; lower `repetitions`, or sweep fewer \
             values"
        );
        Err(source.error(&self.repetitions.span(), problem))
    }

    /// Returns a label that two different transports have in common, if there is one.
    fn shared_label(&self) -> Option<&str> {
        let mut known: BTreeMap<&str, &NamedTransport> = BTreeMap::new();
        let mut transports = self.transports.get_ref().iter();
        let other = transports.find(|named| {
            let first = *known.entry(&named.label).or_insert(named);
            let is_same = first.spec == named.spec && !first.has_own_workload && !named.has_own_workload;
            !is_same && !std::ptr::eq(first, *named)
        });
        other.map(|named| named.label.as_str())
    }

    /// Returns for each transport how many transports before it in the list equal it and have the same label.
    pub(crate) fn duplicate_indexes(&self) -> Vec<u32> {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        let transports = self.transports.get_ref().iter();
        let before = transports.map(|named| {
            let count = seen.entry(&named.label).or_insert(0);
            *count += 1;
            *count - 1
        });
        before.collect()
    }

    /// Returns the error for keys that contradict each other, if any do. Its position is that of the first of
    /// these keys, or of their table.
    pub(crate) fn why_unsupported(
        &self,
        error: &ScenarioError,
        table: &DeTable<'_>,
        step: &[Assignment<'_>],
        source: &Source,
    ) -> InputError {
        let named =
            |at| span_of_named_key(&apply_and_resolve(table, step, source).ok()?, at, &error.to_string());
        let span = match error {
            ScenarioError::Network(_) => named("network").unwrap_or_else(|| self.network.span()),
            ScenarioError::UnknownNode { key: "hosts", .. }
            | ScenarioError::NoMiddlebox(_)
            | ScenarioError::IdleProcessor(_)
            | ScenarioError::ServiceOverDatagrams(_) => self.hosts.span(),
            ScenarioError::UnknownNode { key: "node", node, .. } => {
                let there = self.programs.iter().find(|program| program.get_ref().node == *node);
                span(there)
            }
            ScenarioError::Workload(_)
            | ScenarioError::NoProgram
            | ScenarioError::ProgramsStart
            | ScenarioError::ProgramsAsOtherFlow
            | ScenarioError::UnknownNode { .. }
            | ScenarioError::SameEnds(_)
            | ScenarioError::UnixSocketBetweenNodes(_)
            | ScenarioError::OnwardWithoutReplies(_)
            | ScenarioError::OnwardFromIdleServer(_)
            | ScenarioError::AmbiguousOnwardServer(_)
            | ScenarioError::OnwardLoad
            | ScenarioError::GreedyOverDatagrams => {
                named("workload").unwrap_or_else(|| span(self.workload.as_ref()))
            }
            ScenarioError::Background { index, .. } => self.background[*index].span(),
            ScenarioError::Onward { index, .. } => self.onward[*index].span(),
            ScenarioError::NoMessages | ScenarioError::TooManyMessages(_) => span(self.messages.as_ref()),
            ScenarioError::Program { index, .. } => self.programs[*index].span(),
            ScenarioError::WaitsForLostReply(_)
            | ScenarioError::ProgramsTls
            | ScenarioError::LongerThanSendBuffer(..)
            | ScenarioError::TooManyConnections(..) => self.transports.span(),
        };
        source.error(&span, error.to_string())
    }

    /// Returns the workload of the file; if it has none, the workload of its programs.
    fn workload(&self) -> WorkloadSpec {
        let given = self.workload.as_ref().map(|workload| workload.get_ref().clone());
        let programs = || programs::workload(&self.programs);
        given.or_else(programs).unwrap_or_else(|| WorkloadSpec::new(Simco::default()))
    }

    fn runs_programs(&self) -> bool {
        self.workload().runs_programs()
    }

    /// Returns the number of messages in all repetitions together; programs run once in each repetition.
    fn messages(&self) -> u64 {
        let once = u64::from(self.repetitions.get_ref().min);
        let usual = if self.runs_programs() { once } else { DEFAULT_MESSAGES };
        self.messages.as_ref().map_or(usual, |given| *given.get_ref())
    }

    /// Multiplies the number of messages by the number of repetitions, because the file gives the number for
    /// one repetition.
    pub(crate) fn multiply_messages(&mut self) {
        let repetitions = u64::from(self.repetitions.get_ref().min);
        if let Some(messages) = &mut self.messages {
            *messages.as_mut() = messages.get_ref().saturating_mul(repetitions);
        }
    }

    /// Returns the point of one transport; `twin` is the number of equal transports before it in the list.
    pub(crate) fn point(
        &self,
        experiment: &str,
        transport: usize,
        twin: u32,
        axes: Vec<(String, String)>,
    ) -> Point {
        let NamedTransport { spec, label, .. } = self.transports.get_ref()[transport].clone();
        let label = if twin == 0 { label } else { format!("{label} ({})", twin + 1) };
        Point {
            id: PointId(0),
            experiment: experiment.to_owned(),
            label,
            transport: spec,
            twin,
            axes,
            messages: self.messages(),
            repetitions: *self.repetitions.get_ref(),
            precision: self.precision.as_ref().map(|precision| *precision.get_ref()),
            timeline: self.timeline.as_ref().map(|part| *part.get_ref()),
            seed: self.seed,
            network: self.network.get_ref().clone(),
            hosts: self.hosts.get_ref().clone(),
            workload: self.workload(),
            background: self.background.iter().map(|entry| entry.get_ref().clone()).collect(),
            onward: self.onward.iter().map(|entry| entry.get_ref().clone()).collect(),
            programs: self.programs.iter().map(|program| program.get_ref().clone()).collect(),
            root: self.root.get_ref().clone(),
            world: self.world.get_ref().clone(),
            provenance: String::new(),
        }
    }
}

/// Returns the span of a value in the file; an empty span if the value is absent.
fn span<T>(written: Option<&Spanned<T>>) -> Range<usize> {
    written.map_or(0..0, Spanned::span)
}
