//! Reads an experiment file and resolves it to points.

use std::collections::BTreeMap;
use std::ops::Range;

use hol_base::{Duration, Ratio, plain_words};
use hol_network::NetworkSpec;
use hol_scenario::{Program, Root, ScenarioError};
use hol_workloads::{HostSpec, Kind, Simco, WorkloadSpec};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::axes::{Assignment, combinations};
use crate::background::Background;
use crate::error::InputError;
use crate::figure::{self, FigureRequest};
use crate::named_paths;
use crate::named_transport::{NamedTransport, merge_workload};
use crate::onward::Onward;
use crate::permission;
use crate::point::{Point, PointId};
use crate::programs;
use crate::repetitions::Repetitions;
use crate::round_trips;
use crate::schema;
use crate::series::SHORTEST_INTERVAL;
use crate::size_file;
use crate::source::Source;
use crate::toml_reader;
use crate::traces;
use crate::transport_options;
use crate::worlds::WorldName;

/// The default number of messages over all repetitions.
const DEFAULT_MESSAGES: u64 = 10_000;

/// The largest number of runs; more are considered a mistake, and their list would not fit into memory.
const MAX_RUNS: u64 = 1_000_000;

/// The shortest part of a run's timeline; with shorter parts there would be more parts than messages.
const SHORTEST_PART: Duration = Duration::from_millis(1);

/// An experiment: networks, transports, workload, and the number of repetitions.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Name of the experiment: that of its file without the extension.
    pub name: String,
    /// Title of the experiment, one line.
    pub title: String,
    /// Whether the records of single messages are kept.
    pub records: RecordsKept,
    /// The interval of the time series; `None` if none is recorded.
    pub series: Option<Duration>,
    /// The points of all combinations of the axes; the transports are the first axis.
    pub points: Vec<Point>,
    /// The figures that the file asks for; if empty, the axes determine the figures.
    pub figures: Vec<FigureRequest>,
    /// The statements of the topology's script that have no effect, with line and reason.
    pub ignored: Vec<String>,
    /// The SHA-256 of its file and of the text files that it names, by path.
    pub input_digests: BTreeMap<String, String>,
}

/// Which records of single messages are kept in addition to the summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordsKept {
    /// No records; a digest represents them.
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
    /// Title of the report. Default: the file's name.
    title: Option<String>,
    /// Seed of all random numbers; the same seed gives the same run, except in the live world. Default 1.
    #[serde(default = "default_seed")]
    seed: u64,
    /// Number of messages of a point, over all its repetitions. Default 10,000; programs run once per repetition.
    #[schemars(with = "Option<u64>")]
    messages: Option<Spanned<u64>>,
    /// Number of runs of a point, each with its own seed; `"5..40"`: as many as `precision` needs, within these limits. Default 10.
    #[serde(default = "default_repetitions")]
    #[schemars(with = "Option<Repetitions>")]
    repetitions: Spanned<Repetitions>,
    /// Repeat until the half width of the 95 % confidence interval of the mean is at most this share of the mean; needs a range of
    /// `repetitions`. Default: no requirement.
    #[schemars(with = "Option<Ratio>")]
    precision: Option<Spanned<Ratio>>,
    /// Count deliveries per interval of this length, for figures over time. Default none.
    #[schemars(with = "Option<Duration>")]
    timeline: Option<Spanned<Duration>>,
    /// Keep the records of all messages as Parquet files. Default none.
    #[serde(default)]
    records: RecordsKept,
    /// Sample each run at this interval into Parquet files: windows, round-trip times, queues. Default none.
    #[schemars(with = "Option<Duration>")]
    series: Option<Spanned<Duration>>,
    /// World in which the runs take place: `"model"`, `"kernel"`, `"kernel:6.1"` for that version, `"kernel:uml"`, `"live"` over this
    /// machine's loopback, `"live:namespaces"` over a path of network namespaces, `"live:HOST"` between this host and another,
    /// `"live:server=HOST,cross=OTHER"` between several hosts by node, or `"live:HOST via ROUTER"` through a router. Default `model`.
    #[serde(default = "default_world")]
    #[schemars(with = "Option<String>")]
    pub(crate) world: Spanned<WorldName>,
    /// The transports to compare.
    #[schemars(with = "Vec<NamedTransport>")]
    transports: Spanned<Vec<NamedTransport>>,
    /// Further figures of the report.
    #[serde(default, rename = "figure")]
    figures: Vec<figure::FigureTable>,
    /// An ns script that defines the network. Its path is relative to this file.
    // Only a swept topology arrives here; otherwise it is read before, and removed.
    #[schemars(with = "Option<String>")]
    topology: Option<Spanned<IgnoredAny>>,
    /// The network between the endpoints. Default a link of 100 Mbit/s and 10 ms.
    #[serde(default = "default_network")]
    #[schemars(with = "Option<NetworkSpec>")]
    pub(crate) network: Spanned<NetworkSpec>,
    /// Properties of nodes other than links, by name.
    #[serde(default = "no_hosts")]
    #[schemars(with = "Option<BTreeMap<String, HostSpec>>")]
    hosts: Spanned<BTreeMap<String, HostSpec>>,
    /// The workload: the application, its messages and their schedule. Default `simco`.
    #[schemars(with = "Option<WorkloadSpec>")]
    workload: Option<Spanned<WorkloadSpec>>,
    /// Flows of other applications, which compete with the measured one.
    #[serde(default)]
    #[schemars(with = "Vec<Background>")]
    background: Vec<Spanned<Background>>,
    /// Requests that a server sends to other servers before it replies.
    #[serde(default)]
    #[schemars(with = "Vec<Onward>")]
    onward: Vec<Spanned<Onward>>,
    /// Run unmodified programs on nodes. Kernel world only.
    #[serde(default, rename = "program")]
    #[schemars(with = "Vec<Program>")]
    pub(crate) programs: Vec<Spanned<Program>>,
    /// Source of the programs and of the files that they need: `"host"`, a directory, or an archive of one (`.tar`). Default `host`.
    #[serde(default = "host")]
    #[schemars(with = "Option<String>")]
    pub(crate) root: Spanned<Root>,
    /// Axes: a list of values for each dotted key; every combination is a point.
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
fn host() -> Spanned<Root> {
    Spanned::new(0..0, Root::Host)
}
fn no_hosts() -> Spanned<BTreeMap<String, HostSpec>> {
    Spanned::new(0..0, BTreeMap::new())
}

impl Experiment {
    /// Parses an experiment called `name`, and checks that this machine can run every point.
    pub fn parse(name: &str, source: &Source) -> Result<Self, InputError> {
        let (mut experiment, places) = Self::read(name, source)?;
        for (index, (point, place)) in experiment.points.iter_mut().zip(places).enumerate() {
            let in_named_world = point.clone().in_named_world(&point.world);
            *point = in_named_world.map_err(|problem| {
                let problem = problem.to_string();
                source.error(&key_of(index, &problem, source).unwrap_or(place), problem)
            })?;
        }
        Ok(experiment)
    }

    /// Parses an experiment called `name` without checking that this machine can run it.
    pub fn anywhere(name: &str, source: &Source) -> Result<Self, InputError> {
        Self::read(name, source).map(|(experiment, _)| experiment)
    }

    /// Returns why this machine cannot run the experiment: the first point whose world is missing or does
    /// not support it; `None` if it can.
    pub fn why_unsupported(&self) -> Option<String> {
        let in_named_world = self.points.iter().map(|point| point.clone().in_named_world(&point.world));
        in_named_world.filter_map(Result::err).map(|problem| problem.to_string()).next()
    }

    /// Parses an experiment called `name` without checking its worlds; returns for each point where the file
    /// names its world.
    pub(crate) fn read(name: &str, source: &Source) -> Result<(Self, Vec<Range<usize>>), InputError> {
        let mut table = source.table()?;
        let combinations = combinations(&mut table, source)?;
        // Each combination has at least one transport, so too many are refused before any of them is read.
        let checked = source.permission().check_size(combinations.len(), 0);
        checked.map_err(|problem| source.error(&(0..0), problem))?;
        transport_options::apply_overrides(&mut table, source)?;
        let mut files: Vec<ExperimentFile> = Vec::new();
        let (mut count, mut routes) = (0, 0);
        for step in &combinations {
            let file = read_combination(&table, step, source)?;
            let transports = file.transports.get_ref().len();
            count += transports;
            routes += transports * permission::routes(file.network.get_ref());
            let checked = source.permission().check_size(count, routes);
            checked.map_err(|problem| source.error(&file.network.span(), problem))?;
            files.push(file);
        }

        let first = &files[0];
        first.check_runs(&files, source)?;
        let (mut points, mut places) = (Vec::new(), Vec::new());
        for (index, twin) in first.twins().into_iter().enumerate() {
            let own_table = merge_workload(&table, index, &combinations[0], source)?;
            for (file, step) in files.iter().zip(&combinations) {
                let own =
                    own_table.as_ref().map(|table| read_combination(table, step, source)).transpose()?;
                let (file, table) = (own.as_ref().unwrap_or(file), own_table.as_ref().unwrap_or(&table));
                let axes = step.iter().map(|set| (set.key.clone(), set.text())).collect();
                let point = file.point(name, index, twin, axes);
                point.scenario(0).check().map_err(|e| file.why_unsupported(&e, table, step, source))?;
                points.push(point.with_defaults());
                places.push(file.world.span());
            }
        }
        let swept: Vec<&str> =
            combinations.first().into_iter().flatten().map(|set| set.key.as_str()).collect();
        let figures = first.figures.iter().map(|figure| figure.resolve(&swept, &points));
        let figures =
            figures.collect::<Result<_, _>>().map_err(|(span, problem)| source.error(&span, problem))?;
        let title = first.title.clone().unwrap_or_else(|| name.to_owned());
        let (name, records, ignored) = (name.to_owned(), first.records, source.ignored_statements()?);
        let input_digests = source.hashes();
        let series = first.series.as_ref().map(|interval| *interval.get_ref());
        Ok((Self { name, title, records, series, points, figures, ignored, input_digests }, places))
    }

    /// Moves the experiment to another world; returns each point that this world cannot run, with the
    /// reason.
    pub fn in_world(mut self, world: &WorldName) -> Result<(Self, Vec<String>), InputError> {
        let place = format!("--world {world}");
        let there = world.open().and_then(|world| world.provenance());
        there.map_err(|problem| InputError { place, problem: problem.to_string() })?;
        let mut refused = Vec::new();
        let in_named_world = self.points.into_iter().map(|point| point.in_named_world(world));
        self.points = in_named_world
            .filter_map(|point| point.map_err(|why| refused.push(why.to_string())).ok())
            .collect();
        Ok((self, refused))
    }

    /// Returns whether the experiment names a world other than the default.
    pub fn names_a_world(&self) -> bool {
        self.points.iter().any(|point| !point.world.is_default())
    }

    /// Returns the experiment with a twentieth of the messages, but at least 100 in each repetition, for a
    /// quick overview.
    pub fn quick(mut self) -> Self {
        for point in &mut self.points {
            let min = 100 * u64::from(point.repetitions.min);
            point.messages = (point.messages / 20).max(min).min(point.messages);
            point.id = point.identity();
        }
        self
    }
}

/// Reads the file with the values of one combination of the axes.
fn read_combination<'s>(
    table: &DeTable<'s>,
    step: &[Assignment<'s>],
    source: &Source,
) -> Result<ExperimentFile, InputError> {
    let written = with_step(table, step, source)?;
    let table = resolved(written.clone(), source)?;
    check_shapes(&table, source)?;
    let file: ExperimentFile =
        toml_reader::from_table(&table).map_err(|e| match offending_key(&table, e.message()) {
            Some(span) => source.error(&span, plain_words(&with_keys(&table, e.message()))),
            None => source.explain(e),
        })?;
    let checked = source.permission().check(&file).and_then(|()| file.check());
    checked.map_err(|(span, problem)| source.error(&span, problem))?;
    file.with_absolute_paths(&written, step, source)
}

fn with_values<'s>(
    table: &DeTable<'s>,
    step: &[Assignment<'s>],
    source: &Source,
) -> Result<DeTable<'s>, InputError> {
    resolved(with_step(table, step, source)?, source)
}

/// Returns the experiment with the values of one combination of the axes.
fn with_step<'s>(
    table: &DeTable<'s>,
    step: &[Assignment<'s>],
    source: &Source,
) -> Result<DeTable<'s>, InputError> {
    let mut table = table.clone();
    step.iter().try_for_each(|set| set.apply(&mut table, source))?;
    Ok(table)
}

/// Returns the experiment with delays in place of round-trip times, and settings in place of named paths.
fn resolved<'s>(mut table: DeTable<'s>, source: &Source) -> Result<DeTable<'s>, InputError> {
    round_trips::replace_rtt(&mut table, source)?;
    named_paths::resolve_paths(&mut table, source)?;
    Ok(table)
}

/// Rejects lists in place of tables: serde would assign their values to the keys in order.
fn check_shapes(table: &DeTable<'_>, source: &Source) -> Result<(), InputError> {
    for (key, value) in table {
        let keys = schema::table_keys();
        let of_tables = keys.tables.contains(key.get_ref().as_ref());
        let of_named_tables = keys.named_tables.contains(key.get_ref().as_ref());
        match value.get_ref() {
            DeValue::Array(_) if of_tables => return Err(list_for_table(value, source)),
            DeValue::Array(list) => {
                for element in list.iter() {
                    match element.get_ref() {
                        DeValue::Table(inner) => check_shapes(inner, source)?,
                        DeValue::Array(_) => return Err(list_for_table(element, source)),
                        _ => (),
                    }
                }
            }
            DeValue::Table(inner) => {
                let list = inner.values().find(|value| of_named_tables && value.get_ref().is_array());
                list.map_or(Ok(()), |list| Err(list_for_table(list, source)))?;
                check_shapes(inner, source)?;
            }
            _ => (),
        }
    }
    Ok(())
}

/// Returns the span of a value; empty if it is absent.
fn span<T>(written: Option<&Spanned<T>>) -> Range<usize> {
    written.map_or(0..0, Spanned::span)
}

fn list_for_table(list: &Spanned<DeValue<'_>>, source: &Source) -> InputError {
    source.error(&list.span(), "this must be a table, not a list; write { key = … } or [key]")
}

/// Returns the span of the key that the world's `problem` with a point names.
fn key_of(point: usize, problem: &str, source: &Source) -> Option<Range<usize>> {
    let mut table = source.table().ok()?;
    let combinations = combinations(&mut table, source).ok()?;
    let table = with_values(&table, &combinations[point % combinations.len()], source).ok()?;
    let own = ["workload", "network"].into_iter().find_map(|at| named_in(&table, at, problem));
    own.or_else(|| programs::command_in(&table, problem))
}

/// Returns the span of the first key of the table `at` that a problem names in backquotes.
pub(crate) fn named_in(table: &DeTable<'_>, at: &str, problem: &str) -> Option<Range<usize>> {
    let DeValue::Table(inner) = table.get(at)?.get_ref() else { return None };
    problem.split('`').skip(1).step_by(2).find_map(|key| Some(inner.get(key)?.span()))
}

/// Returns the span of the `[workload]` key whose removal removes the problem: a workload is deserialized as a whole, and its error
/// has no position.
fn offending_key(table: &DeTable<'_>, problem: &str) -> Option<Range<usize>> {
    let DeValue::Table(workload) = table.get("workload")?.get_ref() else { return None };
    let spans = workload.iter().filter(|(key, _)| {
        let mut without = table.clone();
        if let Some(DeValue::Table(inner)) = without.get_mut("workload").map(Spanned::as_mut) {
            inner.remove(key.get_ref().as_ref());
        }
        let other = toml_reader::from_table::<ExperimentFile>(&without).err();
        other.is_none_or(|other| other.message() != problem && !other.message().starts_with("missing field"))
    });
    let is_unknown = problem.starts_with("unknown field");
    spans.map(|(key, value)| if is_unknown { key.span() } else { value.span() }).next()
}

/// Adds the keys of the workload to the message, because the deserializer does not list those of nested tables.
fn with_keys(table: &DeTable<'_>, message: &str) -> String {
    let kind = table.get("workload").and_then(|table| table.get_ref().get("kind")?.get_ref().as_str());
    let workload = Kind::all().into_iter().find(|workload| Some(workload.workload().name()) == kind);
    match workload.filter(|_| message.starts_with("unknown field") && !message.contains("expected")) {
        Some(workload) => format!("{message}, expected one of `{}`", workload.keys().join("`, `")),
        None => message.to_owned(),
    }
}

impl ExperimentFile {
    fn check(&self) -> Result<(), (Range<usize>, String)> {
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
                    ", or fewer repetitions (repetitions = {messages}, as an option --repetitions {messages})"
                ),
            };
            let problem = format!(
                "{messages} messages are too few for {min} repetitions; use at least {min} messages{fewer}"
            );
            return Err((span(self.messages.as_ref()), problem));
        }
        if let Some(part) = self.timeline.as_ref().filter(|part| *part.get_ref() < SHORTEST_PART) {
            let problem = format!("`timeline` must be at least {SHORTEST_PART}");
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

    /// Makes the paths that the file names absolute; they are relative to the file.
    fn with_absolute_paths(
        mut self,
        written: &DeTable<'_>,
        step: &[Assignment<'_>],
        source: &Source,
    ) -> Result<Self, InputError> {
        self.programs.iter_mut().try_for_each(|program| programs::find_files(program, source))?;
        programs::find_root(&mut self.root, source)?;
        traces::read_traces(&mut self.network, written, step, source)?;
        traces::read_distributions(&mut self.network, source)?;
        self.read_sizes(written, source)?;
        Ok(self)
    }

    /// Reads the files of sizes that workloads name; the sizes become part of the point.
    fn read_sizes(&mut self, written: &DeTable<'_>, source: &Source) -> Result<(), InputError> {
        let own = self.workload.iter_mut().map(|workload| (workload.span(), workload.as_mut()));
        let background = self.background.iter_mut().map(|flows| (flows.span(), &mut flows.as_mut().workload));
        let onward =
            self.onward.iter_mut().map(|requests| (requests.span(), &mut requests.as_mut().workload));
        for (at, (place, workload)) in own.chain(background).chain(onward).enumerate() {
            let is_own = at == 0 && written.contains_key("workload");
            for (key, sizes) in workload.sizes_mut() {
                let named = is_own.then(|| named_in(written, "workload", &format!("`{key}`"))).flatten();
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
    fn check_runs(&self, files: &[Self], source: &Source) -> Result<(), InputError> {
        let runs =
            |file: &Self| u64::from(file.repetitions.get_ref().max) * file.transports.get_ref().len() as u64;
        let runs = files.iter().map(runs).fold(0, u64::saturating_add);
        if runs <= MAX_RUNS {
            return Ok(());
        }
        let problem = format!(
            "{runs} runs together are more than {MAX_RUNS}; lower `repetitions`, or sweep fewer values"
        );
        Err(source.error(&self.repetitions.span(), problem))
    }

    /// Returns a label that two different transports share.
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

    /// Returns for each transport how many equal ones with the same label precede it.
    fn twins(&self) -> Vec<u32> {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        let transports = self.transports.get_ref().iter();
        let before = transports.map(|named| {
            let count = seen.entry(&named.label).or_insert(0);
            *count += 1;
            *count - 1
        });
        before.collect()
    }

    /// Returns the error of keys that contradict each other, at the position of the first of them or of their table.
    fn why_unsupported(
        &self,
        error: &ScenarioError,
        table: &DeTable<'_>,
        step: &[Assignment<'_>],
        source: &Source,
    ) -> InputError {
        let named = |at| named_in(&with_values(table, step, source).ok()?, at, &error.to_string());
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

    /// Returns the workload of the file, or else the workload of its programs.
    fn workload(&self) -> WorkloadSpec {
        let given = self.workload.as_ref().map(|workload| workload.get_ref().clone());
        let programs = || programs::workload(&self.programs);
        given.or_else(programs).unwrap_or_else(|| WorkloadSpec::new(Simco::default()))
    }

    fn runs_programs(&self) -> bool {
        self.workload().is_programs()
    }

    /// Returns the number of messages over all repetitions; programs run once in each.
    fn messages(&self) -> u64 {
        let once = u64::from(self.repetitions.get_ref().min);
        let usual = if self.runs_programs() { once } else { DEFAULT_MESSAGES };
        self.messages.as_ref().map_or(usual, |given| *given.get_ref())
    }

    fn point(&self, experiment: &str, transport: usize, twin: u32, axes: Vec<(String, String)>) -> Point {
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
