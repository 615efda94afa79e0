//! `hol run`: runs an experiment file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use hol_lab::{
    Estimate, Experiment, Manifest, Plan, Point, PointResult, RecordsKept, Results, Shard, Source,
};
use serde::Serialize;

use crate::comparison_flags::apply_settings;
use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::peer::PeerArgs;
use crate::point_row::{self, SweepRow, json, warnings};
use crate::progress::format_seconds;
use crate::progress_args::ProgressArgs;
use crate::report;
use crate::run_plan::{RunOptions, check_no_failures, perform_missing_runs, thread_count};
use crate::terminal::{group_digits, note, print};

const EXAMPLES: &str = "\
Examples:
  hol run experiments/hello.toml                       a sweep, with tables and a report
  hol run mine.toml --set network.delay=50ms --out results/slow
  hol run mine.toml --plan                             its points, and the time that they need";

/// Run an experiment file: every point of its sweep, with all repetitions, on all cores.
///
/// Finished runs are kept. After an interruption, the same command continues.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    experiment_args: ExperimentArgs,
    /// Result directory [default: results/NAME for the file NAME.toml]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of runs in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Continue in a directory with results of a different experiment, and reuse the runs that match
    #[arg(long)]
    extend: bool,
    /// Perform one part of the runs, such as 2/4 for the second of four; `hol merge` joins the parts
    #[arg(long, value_name = "I/N", conflicts_with = "extend")]
    shard: Option<Shard>,
    /// Show the points and their cost without running them
    #[arg(long)]
    plan: bool,
    /// Print a JSON object for each point, one per line, in the order of the plan
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress_args: ProgressArgs,
}

/// An experiment file, and the overrides of the command line.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// Experiment file; - is standard input. See experiments/hello.toml for an example; `hol init` writes a new file
    file: PathBuf,
    /// Set a key, as in network.loss=1%; a swept key gets this one value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Where to run: model (simulated), kernel (Linux in a virtual machine; kernel:6.1 chooses a version, kernel:uml is
    /// User-Mode Linux) or live (this machine's sockets; live:namespaces uses network namespaces; --peer and --router use
    /// other hosts)
    #[arg(long)]
    world: Option<String>,
    #[command(flatten)]
    peer: PeerArgs,
    /// Also write the records of all messages as Parquet files; flow 0 is the workload, the others are
    /// background flows
    #[arg(long)]
    records: bool,
    /// Record congestion windows, round-trip times and queues at this interval, in Parquet files and in the report
    #[arg(long, value_name = "10ms", allow_hyphen_values = true)]
    series: Option<String>,
}

impl Run {
    /// Performs the missing runs, then prints the results.
    pub fn run(&self) -> Result<(), Failure> {
        self.progress_args.end_with_parent()?;
        self.experiment_args.set_secret()?;
        let experiment = self.experiment()?;
        experiment.ignored.iter().for_each(|what| note!("ignored: {what}"));
        if self.plan {
            print(&describe_cost(&Plan::new([&experiment]), self.jobs, self.json));
            return Ok(());
        }
        let manifest = Manifest::new(
            &experiment.title,
            None,
            std::slice::from_ref(&experiment),
            std::env::args().collect(),
        );
        let manifest = Manifest { shard: self.shard, ..manifest };
        let name = match self.shard {
            Some(shard) => format!("{}-{}", experiment.name, shard.to_string().replace('/', "of")),
            None => experiment.name,
        };
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from("results").join(name));
        let options = RunOptions {
            jobs: self.jobs,
            progress_output: self.progress_args.progress_output(self.json),
            extends: self.extend,
        };
        let results = perform_missing_runs(&out, manifest, options)?;
        match self.shard {
            Some(shard) => print_part(shard, &results, &out, self.json),
            None => print_results(&results, &out, self.json),
        }
    }

    /// Returns the experiment with all options applied.
    pub fn experiment(&self) -> Result<Experiment, Failure> {
        self.experiment_args.experiment()
    }
}

impl ExperimentArgs {
    /// Makes the secret in the file of --secret-file available to live runs, if that flag is set.
    pub fn set_secret(&self) -> Result<(), Failure> {
        self.peer.set_secret()
    }

    /// Returns the experiment with all options applied.
    pub fn experiment(&self) -> Result<Experiment, Failure> {
        let source = self.source()?;
        let mut experiment = Experiment::parse(&source.stem(), &source)?;
        if self.records {
            experiment.records = RecordsKept::All;
        }
        Ok(experiment)
    }

    fn source(&self) -> Result<Source, Failure> {
        let mut source = Source::read(&self.file)?;
        apply_settings(&mut source, &self.settings)?;
        if let Some(world) = &self.peer.world(self.world.as_ref())? {
            source.set(&format!("--world {world}"), "world", &format!("{world:?}"))?;
        }
        if let Some(interval) = &self.series {
            source.set(&format!("--series {interval}"), "series", &format!("{interval:?}"))?;
        }
        Ok(source)
    }
}

/// Conversions for commands that run the experiment elsewhere.
impl ExperimentArgs {
    /// Returns the arguments of `hol run` for the same experiment.
    pub fn arguments(&self) -> Result<Vec<String>, Failure> {
        if self.file == Path::new("-") {
            return Err(Failure::Usage(
                "-: the experiment must be a file, because the jobs read it again later; give the path of a \
                file"
                    .into(),
            ));
        }
        let mut words = vec![self.file.to_string_lossy().into_owned()];
        words.extend(self.settings.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()]));
        let world = self.peer.world(self.world.as_ref())?;
        words.extend(world.into_iter().flat_map(|world| ["--world".to_owned(), world]));
        words.extend(self.records.then(|| "--records".to_owned()));
        words.extend(self.series.iter().flat_map(|interval| ["--series".to_owned(), interval.clone()]));
        Ok(words)
    }

    /// Returns the experiment as one file that refers to no other file.
    pub fn as_single_file(&self) -> Result<String, Failure> {
        let mut source = self.source()?;
        if self.records {
            source.set("--records", "records", "\"all\"")?;
        }
        let text = toml::to_string(&source.merged()?).map_err(Failure::failed)?;
        Experiment::parse(&source.stem(), &Source::new(source.name(), text.clone()))?;
        Ok(text)
    }

    /// Returns the file as it is, without the overrides of the command line.
    pub fn path_and_text(&self) -> Result<(&Path, String), Failure> {
        let is_placed = self.world.is_some() || self.peer.is_given();
        if !self.settings.is_empty() || is_placed || self.records || self.series.is_some() {
            return Err(Failure::Usage(
                "--set, --world, --peer, --router, --records and --series have no effect on a server; write the settings into the file"
                    .into(),
            ));
        }
        let text = std::fs::read_to_string(&self.file);
        let text = text.map_err(|e| {
            Failure::Usage(format!("{}: {e}; give the path of an existing file", self.file.display()))
        })?;
        Ok((&self.file, text))
    }
}

/// Prints the results, and writes the report.
pub fn print_results(results: &Results, out: &Path, is_json: bool) -> Result<(), Failure> {
    let (page, drawn) = report::write_report(results, Vec::new(), out)?;
    if is_json {
        results.points.iter().for_each(|point| print(&json(&SweepRow::of(point))));
    } else {
        print(&conclusions(&drawn));
        print(&format_points(results));
        print(&format!(
            "\n{} contains the points (points.csv) and the report: {}\n",
            out.display(),
            page.display()
        ));
    }
    check_no_failures(results, out)
}

/// Reports the results of a part, and the command that merges the parts.
fn print_part(shard: Shard, results: &Results, out: &Path, is_json: bool) -> Result<(), Failure> {
    let done = results.needed - results.missing;
    if is_json {
        print(&json(&serde_json::json!({ "shard": shard, "runs": done, "missing": results.missing })));
    } else {
        print(&format!(
            "part {shard} is in {}: {} runs; `hol merge DIR... --out DIR` joins the {} parts\n",
            out.display(),
            group_digits(done),
            shard.part_count()
        ));
    }
    check_no_failures(results, out)
}

/// Describes the points and the approximate time that they take. The time ranges from the minimum number of
/// repetitions to the maximum that the key `precision` may require.
pub fn describe_cost(plan: &Plan, jobs: Option<usize>, is_json: bool) -> String {
    if is_json {
        return plan
            .points()
            .iter()
            .zip(0..)
            .map(|(point, index)| json(&PlannedPoint::of(index, point)))
            .collect();
    }
    let jobs = thread_count(jobs);
    let Estimate { min, max } = plan.estimate(jobs.min(thread_count(None)));
    let range = |min: String, max: String| if min == max { min } else { format!("{min} to {max}") };
    let messages = range(group_digits(plan.message_count()), group_digits(plan.max_messages()));
    let time = range(format_seconds(min), format_seconds(max));
    format!(
        "{plan}{} points, {messages} messages: about {time} with {}\n",
        plan.points().len(),
        describe_jobs(jobs)
    )
}

/// Describes the number of parallel runs: `1 job`, `4 jobs`.
pub fn describe_jobs(jobs: usize) -> String {
    if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") }
}

/// A planned point, as printed by `--plan --json`.
#[derive(Debug, Serialize)]
struct PlannedPoint<'p> {
    index: usize,
    point: String,
    experiment: &'p str,
    label: &'p str,
    transport: String,
    axes: BTreeMap<&'p str, &'p str>,
    /// Total number of messages if each point runs only its minimum number of repetitions.
    messages: u64,
    repetitions_min: u32,
    repetitions_max: u32,
    seed: u64,
}

impl<'p> PlannedPoint<'p> {
    fn of(index: usize, point: &'p Point) -> Self {
        Self {
            index,
            point: point.id.to_string(),
            experiment: &point.experiment,
            label: &point.label,
            transport: point.transport.to_string(),
            axes: point.axes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
            messages: point.messages,
            repetitions_min: point.repetitions.min,
            repetitions_max: if point.precision.is_some() {
                point.repetitions.max
            } else {
                point.repetitions.min
            },
            seed: point.seed,
        }
    }
}

/// Returns the conclusions as sentences.
fn conclusions(report: &hol_report::Report) -> String {
    /// Maximum number of sentences that are shown.
    const MAX_SENTENCES: usize = 12;
    let headlines = report.surveys.iter().map(|survey| &survey.headline);
    let mut sentences: Vec<String> = headlines
        .flat_map(|headline| {
            [&headline.outages[..], &headline.main_sentences[..], &headline.lines[..]].concat()
        })
        .collect();
    if sentences.len() > MAX_SENTENCES {
        let more = sentences.len() - MAX_SENTENCES;
        sentences.truncate(MAX_SENTENCES);
        let lines = if more == 1 { "line" } else { "lines" };
        sentences.push(format!("… and {more} more {lines} in the report"));
    }
    if sentences.is_empty() { String::new() } else { format!("{}\n\n", sentences.join("\n")) }
}

/// Returns a table of the points, as many as fit on a screen, and the warnings of all points.
fn format_points(results: &Results) -> String {
    let all = &results.points;
    let shown = first_conditions(all);
    let mut text = point_row::points_table("point", &shown, |result| result.point.to_string());
    if shown.len() < all.len() {
        let more = all.len() - shown.len();
        text += &format!(
            "… and {more} points under other conditions; points.csv and the report contain all points\n"
        );
    }
    text + &warnings(all)
}

/// Returns the points of the first conditions (combinations of axis values), as many as fit on a screen, with all
/// transports.
fn first_conditions(points: &[PointResult]) -> Vec<PointResult> {
    /// Number of points that fit on a screen.
    const MAX_POINTS: usize = 24;
    let mut shown = vec![false; points.len()];
    for first in 0..points.len() {
        if shown[first] {
            continue;
        }
        let mut extended = shown.clone();
        for (at, result) in points.iter().enumerate() {
            extended[at] |= points[first].point.has_conditions_of(&result.point);
        }
        let count = extended.iter().filter(|is_shown| **is_shown).count();
        if count > MAX_POINTS && shown.contains(&true) {
            break;
        }
        shown = extended;
    }
    points.iter().zip(shown).filter(|(_, is_shown)| *is_shown).map(|(result, _)| result.clone()).collect()
}
