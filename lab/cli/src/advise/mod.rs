//! `hol advise`: finds where along an axis the better transport changes.

mod map;
mod sampler;
mod search_answer;

use std::path::PathBuf;

use clap::Args;
use hol_base::Ratio;
use hol_lab::{Experiment, InputError, Point, Source};
use hol_report::survey::{Axis, axes};
use serde::Serialize;

use crate::comparison_flags::apply_settings;
use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::point_row::json;
use crate::run_plan::{stop_on_interrupt, thread_count, warn_of_engine};
use crate::terminal::print;
use sampler::Sampler;

const EXAMPLES: &str = "\
Examples:
  hol advise experiments/hello.toml          the loss at which the better transport changes
  hol advise mine.toml --set network.delay=50ms";

/// Find the values of a swept key at which the better transport changes, with most runs near these values.
///
/// The key is the first one with numeric values; the search covers its smallest to its largest value in the file. Each
/// point is repeated until its result is significant (99.95 %). The interval around a crossover is narrowed until it is
/// as precise as requested; then both of its ends are confirmed with the maximum number of repetitions.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct Advise {
    /// Experiment file with numbers under at least one key of [sweep]
    file: PathBuf,
    /// Swept key along which to search [default: the first swept key with numeric values]
    #[arg(long, value_name = "KEY")]
    over: Option<String>,
    /// Precision of the crossover: a share of its value on a logarithmic axis, or of the length of a linear axis
    #[arg(long, value_name = "5%", default_value = "5%")]
    precision: Ratio,
    /// Maximum number of repetitions of one point [default: 400, or 16 times the repetitions of the file if that is
    /// more]
    #[arg(long, alias = "most", value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    max_repetitions: Option<usize>,
    /// Set a key, as in network.loss=1%
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Number of runs in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Print a JSON object for each pair of transports at each combination of the other axes, one per line
    #[arg(long)]
    json: bool,
}

/// The result of the search for two transports and one combination of the other axes, as printed with `--json`.
#[derive(Debug, Serialize)]
struct SearchResult {
    axis: String,
    unit: &'static str,
    /// The values of the other axes, as text; empty if there are no other axes.
    at: String,
    transport: String,
    than: String,
    metric: &'static str,
    #[serde(rename = "borders")]
    crossovers: Vec<Crossover>,
    sentence: String,
    #[serde(skip)]
    map: String,
}

/// A crossover in JSON: the comparison has the result `before` up to `low`, and the result `after` from `high` on.
#[derive(Debug, Serialize)]
struct Crossover {
    /// The largest measured value of the axis at which the result is still the one in the field `before`.
    low: f64,
    /// The smallest measured value of the axis at which the result is the one in the field `after`.
    high: f64,
    before: &'static str,
    after: &'static str,
}

impl Advise {
    /// Searches the axis for each pair of transports and each combination of the other axes, and prints the results.
    pub fn run(&self) -> Result<(), Failure> {
        let (source, experiment, axis) = self.load()?;
        let labels = transport_labels(&experiment);
        let [reference, challengers @ ..] = &labels[..] else { return Ok(()) };
        if challengers.is_empty() {
            let name = source.name();
            return Err(Failure::Usage(format!(
                "{name}: there is only one transport; name two or more to compare"
            )));
        }
        let mut sampler = Sampler {
            source: &source,
            axis: &axis,
            precision: self.precision.value(),
            max_repetitions: self.max_repetitions,
            threads: thread_count(self.jobs),
            stop: stop_on_interrupt()?,
            finished: hol_lab::RunResults::default(),
        };
        let mut lines = Vec::new();
        for (others, challenger) in searches(&experiment, &axis, reference, challengers) {
            let line = sampler.search_line(&others, challenger, reference)?;
            if self.json {
                print(&json(&line));
            } else {
                print(&format!("{}\n", line.sentence));
            }
            lines.push(line);
        }
        warn_of_engine(&sampler.finished);
        if !self.json {
            print(&map::draw_map(&lines, &axis));
            print(&format!("\n{} runs\n", sampler.finished.runs().count()));
        }
        Ok(())
    }

    /// Checks the file and the options without performing a run.
    pub fn check(&self) -> Result<(), Failure> {
        self.load().map(|_| ())
    }

    /// Returns the experiment with the options applied, and the axis to search along.
    fn load(&self) -> Result<(Source, Experiment, Axis), Failure> {
        let written = Source::read(&self.file)?;
        let mut source = written.clone();
        apply_settings(&mut source, &self.settings)?;
        let experiment = Experiment::parse(&source.stem(), &source)?;
        let axes = swept_axes(&experiment);
        let Some(axis) = self.choose_axis(&axes) else {
            let of_the_file =
                Experiment::parse(&written.stem(), &written).map(|experiment| swept_axes(&experiment));
            let problem = self.explain_missing_axis(&axes, &of_the_file.unwrap_or_default());
            return Err(InputError { place: source.name().to_owned(), problem }.into());
        };
        Ok((source, experiment, axis.clone()))
    }

    /// Returns the axis to search along. It has one key, because a [[zip]] defines no values between its steps.
    fn choose_axis<'a>(&self, axes: &'a [Axis]) -> Option<&'a Axis> {
        let mut candidates = axes.iter().filter(|axis| is_searchable(axis));
        candidates.find(|axis| self.over.as_ref().is_none_or(|over| axis.keys[0] == *over))
    }

    /// Explains why none of `axes` can be searched. `written` are the axes in the file; `--set` may have replaced some
    /// of them by a single value.
    fn explain_missing_axis(&self, axes: &[Axis], written: &[Axis]) -> String {
        let is_asked = |axis: &&Axis| match &self.over {
            Some(key) => axis.keys.contains(key),
            None => axis.numbers.is_some(),
        };
        let free: Vec<&str> =
            axes.iter().filter(|axis| is_searchable(axis)).map(|axis| axis.keys[0].as_str()).collect();
        let instead = match free.as_slice() {
            [] => String::new(),
            [one] => format!("; {one} can be searched"),
            several => format!("; {} can be searched", several.join(" and ")),
        };
        if let Some(zip) = axes.iter().filter(is_asked).find(|axis| axis.keys.len() > 1) {
            let keys = zip.keys.join(" and ");
            return format!(
                "{keys} are swept together ([[zip]]), so no value between two steps can be tried; sweep a single key{instead}"
            );
        }
        match (&self.over, axes.iter().find(is_asked), written.iter().find(is_asked)) {
            (Some(key), Some(_), _) => format!("the values of {key} are not numbers, so no value between two of them can be \
                tried{instead}"),
            (_, None, Some(fixed)) => {
                let key = self.over.as_ref().unwrap_or(&fixed.keys[0]);
                format!("--set {key} fixes the key along which to search; omit the option{instead}")
            }
            (Some(key), ..) => format!(
                "{key} is not swept{instead}; write its smallest and largest value under [sweep], as in \"{key}\" = [.., ..]"
            ),
            (None, ..) => {
                "no key is swept over numbers; add a range under [sweep], such as \"network.loss\" = [\"0.1%\", \"10%\"]"
                    .to_owned()
            }
        }
    }
}

fn swept_axes(experiment: &Experiment) -> Vec<Axis> {
    let points: Vec<_> = experiment.points.iter().map(|point| point.axes.as_slice()).collect();
    axes(&points)
}

/// Returns whether the axis has values between its steps: it is numeric and has only one key.
fn is_searchable(axis: &Axis) -> bool {
    axis.numbers.is_some() && axis.keys.len() == 1
}

/// Returns the labels of the transports, the reference first.
fn transport_labels(experiment: &Experiment) -> Vec<String> {
    // Points are ordered by transport.
    let mut labels: Vec<String> = experiment.points.iter().map(|point| point.label.clone()).collect();
    labels.dedup();
    labels
}

fn pairs<'p>(ones: &[&'p Point], others: &[&'p Point]) -> Vec<(&'p Point, &'p Point)> {
    ones.iter().flat_map(|one| others.iter().map(|other| (*one, *other))).collect()
}

/// Returns the searches to perform: each combination of values of the other axes, with each challenger. An axis
/// that sets an option of a third transport does not multiply the searches.
fn searches<'c>(
    experiment: &Experiment,
    axis: &Axis,
    reference: &str,
    challengers: &'c [String],
) -> Vec<(Vec<(String, String)>, &'c str)> {
    let of = |label: &str| -> Vec<&Point> {
        experiment.points.iter().filter(|point| point.label == label).collect()
    };
    let mut all: Vec<(Vec<(String, String)>, &str)> = Vec::new();
    for challenger in challengers {
        for (one, other) in pairs(&of(reference), &of(challenger)) {
            let own = other.axes.iter().filter(|(key, _)| one.axis_value(key).is_none());
            let both: Vec<_> = one.axes.iter().chain(own).cloned().collect();
            let search = (without_axis(&both, axis), challenger.as_str());
            let is_affected = [one, other].iter().any(|point| point.axis_value(&axis.keys[0]).is_some());
            if is_affected && one.has_conditions_of(other) && !all.contains(&search) {
                all.push(search);
            }
        }
    }
    // All challengers under the first conditions come first.
    let conditions: Vec<_> = all.iter().map(|(others, _)| others.clone()).collect();
    all.sort_by_key(|(others, _)| conditions.iter().position(|known| known == others));
    all
}

fn without_axis(axes: &[(String, String)], axis: &Axis) -> Vec<(String, String)> {
    axes.iter().filter(|(key, _)| *key != axis.keys[0]).cloned().collect()
}
