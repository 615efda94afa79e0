//! Reads an experiment file and resolves it to points.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hol_base::{Duration, rewrite_parse_error};
use hol_workloads::WorkloadKind;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::axes::{Assignment, keys_of_transport, take_combinations};
use crate::combination::{apply_and_resolve, apply_combination, resolve_table};
use crate::dotted_key::span_of_named_key;
use crate::error::InputError;
use crate::experiment_file::{ExperimentFile, RecordsKept};
use crate::figure::FigureRequest;
use crate::named_transport::merge_workload;
use crate::permission;
use crate::point::Point;
use crate::programs;
use crate::schema;
use crate::source::Source;
use crate::toml_reader;
use crate::transport_options;
use crate::worlds::WorldName;

/// An experiment: networks, transports, workload, and the number of repetitions.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Name of the experiment: the name of its file without the extension.
    pub name: String,
    /// Title of the experiment, one line.
    pub title: String,
    /// Whether the records of single messages are kept.
    pub records: RecordsKept,
    /// The interval of the time series; `None` if none is recorded.
    pub series: Option<Duration>,
    /// The points of all combinations of the axes; the transports are the first axis.
    pub points: Vec<Point>,
    /// The figures that the file requests; if empty, the axes determine the figures.
    pub figures: Vec<FigureRequest>,
    /// The statements of the topology's script that hol ignores, each with its line and the reason.
    pub ignored: Vec<String>,
    /// The SHA-256 of the experiment's file and of the text files that it names, by path.
    pub input_digests: BTreeMap<String, String>,
}

impl Experiment {
    /// Parses an experiment called `name`, and checks that this machine can run every point.
    pub fn parse(name: &str, source: &Source) -> Result<Self, InputError> {
        let (mut experiment, places) = Self::read(name, source)?;
        for (point, place) in experiment.points.iter_mut().zip(places) {
            let in_named_world = point.clone().in_named_world(&point.world);
            *point = in_named_world.map_err(|problem| {
                let problem = problem.to_string();
                let span = span_of_problem(place.combination, &problem, source).unwrap_or(place.world);
                source.error(&span, problem)
            })?;
        }
        Ok(experiment)
    }

    /// Parses an experiment called `name` without checking that this machine can run it.
    pub fn parse_for_any_machine(name: &str, source: &Source) -> Result<Self, InputError> {
        Self::read(name, source).map(|(experiment, _)| experiment)
    }

    /// Returns why this machine cannot run the experiment: the problem of the first point whose world is missing
    /// or does not support it. `None` if it can.
    pub fn why_unsupported(&self) -> Option<String> {
        let in_named_world = self.points.iter().map(|point| point.clone().in_named_world(&point.world));
        in_named_world.filter_map(Result::err).map(|problem| problem.to_string()).next()
    }

    /// Parses an experiment called `name` without checking its worlds. Also returns the place of each point in the
    /// file.
    pub(crate) fn read(name: &str, source: &Source) -> Result<(Self, Vec<Place>), InputError> {
        let mut table = source.table()?;
        let combinations = take_combinations(&mut table, source)?;
        // Each combination has at least one transport, so too many are refused before any of them is read.
        let checked = source.permission().check_point_count(combinations.len(), 0);
        checked.map_err(|problem| source.error(&(0..0), problem))?;
        transport_options::apply_overrides(&mut table, source)?;
        let mut files: Vec<ExperimentFile> = Vec::with_capacity(combinations.len());
        let (mut count, mut routes) = (0, 0);
        for step in &combinations {
            let mut file = read_combination(&table, step, source)?;
            if let Some(first) = files.first() {
                file.share_transports(first);
            }
            let transports = file.transports.get_ref().len();
            count += transports;
            routes += transports * permission::count_routes(file.network.get_ref());
            let checked = source.permission().check_point_count(count, routes);
            checked.map_err(|problem| source.error(&file.network.span(), problem))?;
            files.push(file);
        }

        let first = &files[0];
        first.check_runs(&files, source)?;
        let (mut points, mut places) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (index, twin) in first.duplicate_indexes().into_iter().enumerate() {
            let own_table = merge_workload(&table, index, &combinations[0], source)?;
            let kind = first.transports.get_ref()[index].spec.kind();
            let mut seen = BTreeSet::new();
            for (combination, (file, step)) in files.iter().zip(&combinations).enumerate() {
                let axes = keys_of_transport(step, kind);
                if !seen.insert(axes.clone()) {
                    continue;
                }
                let own =
                    own_table.as_ref().map(|table| read_combination(table, step, source)).transpose()?;
                let (file, table) = (own.as_ref().unwrap_or(file), own_table.as_ref().unwrap_or(&table));
                let point = file.point(name, index, twin, axes);
                point.scenario(0).check().map_err(|e| file.why_unsupported(&e, table, step, source))?;
                points.push(point.with_defaults());
                places.push(Place { combination, world: file.world.span() });
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

/// The place of a point in an experiment file.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Index of the first combination of axis values that results in the point.
    combination: usize,
    /// The position of the value that names the point's world.
    world: Range<usize>,
}

/// Parses the file with the values of one combination of the axes.
fn read_combination<'s>(
    table: &DeTable<'s>,
    step: &[Assignment<'s>],
    source: &Source,
) -> Result<ExperimentFile, InputError> {
    let written = apply_combination(table, step, source)?;
    let table = resolve_table(written.clone(), source)?;
    check_shapes(&table, source)?;
    let mut file: ExperimentFile =
        toml_reader::from_table(&table).map_err(|e| match offending_key(&table, e.message()) {
            Some(span) => source.error(&span, rewrite_parse_error(&with_keys(&table, e.message()))),
            None => source.explain(e),
        })?;
    if source.has_messages_per_repetition() && !step.iter().any(|set| set.sets("messages")) {
        file.multiply_messages();
    }
    let checked = file.check_permission(source.permission()).and_then(|()| file.check());
    checked.map_err(|(span, problem)| source.error(&span, problem))?;
    file.with_absolute_paths(&written, step, source)
}

/// Returns an error for a list in place of a table. Otherwise serde would assign the values of the list to the
/// keys in order.
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

fn list_for_table(list: &Spanned<DeValue<'_>>, source: &Source) -> InputError {
    source.error(&list.span(), "this must be a table, not a list; write { key = … } or [key]")
}

/// Returns the span of the key that is named in `problem`, the world's error for a combination of axis values.
fn span_of_problem(combination: usize, problem: &str, source: &Source) -> Option<Range<usize>> {
    let mut table = source.table().ok()?;
    let combinations = take_combinations(&mut table, source).ok()?;
    let table = apply_and_resolve(&table, &combinations[combination], source).ok()?;
    let own = ["workload", "network"].into_iter().find_map(|at| span_of_named_key(&table, at, problem));
    own.or_else(|| programs::command_span(&table, problem))
}

/// Returns the span of the `[workload]` key without which the problem would disappear. A workload is deserialized as a
/// whole, so its error has no position.
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

/// Adds the keys of the workload to an error message, because the deserializer does not list the keys of nested
/// tables.
fn with_keys(table: &DeTable<'_>, message: &str) -> String {
    let kind = table.get("workload").and_then(|table| table.get_ref().get("kind")?.get_ref().as_str());
    let workload = WorkloadKind::all().into_iter().find(|workload| Some(workload.workload().name()) == kind);
    match workload.filter(|_| message.starts_with("unknown field") && !message.contains("expected")) {
        Some(workload) => format!("{message}, expected one of `{}`", workload.keys().join("`, `")),
        None => message.to_owned(),
    }
}
