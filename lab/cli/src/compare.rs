//! `hol compare`: compares transports under one set of conditions.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;
use hol_base::Duration;
use hol_lab::{Archive, Experiment, Manifest, Plan, PointResult, Results, RunResults, Store, execute};
use hol_measure::Distribution;
use hol_network::{NetworkSpec, Settings};
use hol_report::data::Cell;
use hol_report::survey::{describe_outage, main_metric, prefix_with_class, verdict};

use crate::comparison_flags::ComparisonFlags;
use crate::comparison_steps::ComparisonSteps;
use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::point_row::{Row, describe_breakdown};
use crate::progress::{Progress, ProgressOutput};
use crate::run_plan::{
    self, RunOptions, perform_missing_runs, stop_on_interrupt, thread_count, warn_of_engine,
};
use crate::terminal::{group_digits, print};
use crate::{ccdf, point_row, report};

/// Default of `--budget`: processor time of a comparison.
const DEFAULT_BUDGET: &str = "5s";

const MISSING_TRANSPORTS: &str = "name two or more transports, as in\n  \
    hol compare tcp sctp:streams=1 sctp:streams=8 --loss 1%\n\
    `hol list` shows all transports, `hol list tcp` the options of one";

const EXAMPLES: &str = "\
Examples:
  hol compare tcp quic sctp:streams=8 --loss 1%
  hol compare tcp tcp:cc=bbr --workload page --delay 40ms --loss 0.5%
  hol compare tcp sctp --count 20000 --world kernel    on Linux itself, after hol kernel fetch";

/// Compare transports under one set of conditions.
///
/// In each repetition all transports meet the same losses, so their results are compared in pairs.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct Compare {
    /// Transports to compare: tcp, sctp, quic, udp or mptcp, with options as in sctp:streams=8,rto_min=200ms; each is
    /// compared with the first
    #[arg(value_name = "TRANSPORT")]
    transports: Vec<String>,
    #[command(flatten)]
    flags: ComparisonFlags,
    /// Also write results and a report to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Record congestion windows, round-trip times and queues at this interval; needs --out
    #[arg(long, value_name = "10ms", requires = "out", allow_hyphen_values = true)]
    series: Option<String>,
    /// Add repetitions until each conclusion is clear or this processor time is used up; not with --count or
    /// --repetitions. The time is estimated from the number of packets, so every machine runs the same repetitions
    /// [default: 5s]
    #[arg(long, value_name = "5s", allow_hyphen_values = true)]
    budget: Option<String>,
    /// Print a JSON object for each transport, one per line
    #[arg(long)]
    json: bool,
    /// Number of runs in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    jobs: Option<usize>,
}

impl Compare {
    /// Runs all transports, then prints the results.
    pub fn run(&self) -> Result<(), Failure> {
        self.flags.set_secret()?;
        let (results, outcome) = self.measure()?;
        if self.json {
            results.iter().for_each(|result| print(&point_row::json(&Row::of(result))));
        } else {
            print(&format_results(&results, &self.flags.overrides()));
        }
        if let Some(out) = self.out.as_ref().filter(|_| !self.json) {
            print(&format!(
                "\n{} contains the results; the report is {}\n",
                out.display(),
                out.join("report.html").display()
            ));
        }
        outcome
    }

    /// Performs the runs. Without --count and --repetitions, adds repetitions until each conclusion is clear or the
    /// budget is used up.
    fn measure(&self) -> Result<(Vec<PointResult>, Result<(), Failure>), Failure> {
        let mut experiment = self.experiment()?;
        let steps = self.steps(&experiment)?;
        let mut finished = RunResults::default();
        let mut run = |experiment: &Experiment, is_quiet| {
            run_unfinished(&mut finished, experiment, &Archive::default(), self.jobs, is_quiet || self.json)
        };
        if steps.is_some() {
            experiment = ComparisonSteps::first_step(
                &experiment,
                &run(&ComparisonSteps::pilot_experiment(&experiment), true)?,
            );
        }
        if let (Some(out), Some(_)) = (&self.out, steps) {
            experiment = resume_step(experiment, out)?;
        }
        loop {
            let (results, outcome) = match &self.out {
                Some(out) => {
                    let results = self.run_into(&experiment, out)?;
                    let outcome = run_plan::check_no_failures(&results, out);
                    (results.points, outcome)
                }
                None => (run(&experiment, false)?, Ok(())),
            };
            match steps.filter(|_| outcome.is_ok()).and_then(|steps| steps.next_step(&experiment, &results)) {
                Some(next) => experiment = next,
                None => break Ok((results, outcome.and_then(|()| check_no_failures(&finished)))),
            }
        }
    }

    /// Returns the rule by which repetitions are added; `None` if the user gave their number, or if the world is
    /// not the model.
    fn steps(&self, experiment: &Experiment) -> Result<Option<ComparisonSteps>, Failure> {
        let budget = self.budget.as_deref().unwrap_or(DEFAULT_BUDGET);
        let wrong = |problem: String| Failure::Usage(format!("--budget {budget}: {problem}"));
        let time: Duration = budget.parse().map_err(|e| wrong(format!("{e}")))?;
        let is_simulated = experiment.points.iter().all(|point| point.world.is_default());
        if self.budget.is_some() && !(is_simulated && self.flags.has_automatic_counts()) {
            let problem =
                "only comparisons in the model world, without --count and --repetitions, have a time budget";
            return Err(wrong(problem.to_owned()));
        }
        Ok((is_simulated && self.flags.has_automatic_counts()).then(|| ComparisonSteps::with_budget(time)))
    }

    /// Runs an experiment; writes the results and the report to a directory.
    fn run_into(&self, experiment: &Experiment, out: &Path) -> Result<Results, Failure> {
        let manifest = Manifest::new(
            &format!("{} compared", self.transports.join(", ")),
            None,
            std::slice::from_ref(experiment),
            std::env::args().collect(),
        );
        let progress_output = if self.json { ProgressOutput::Quiet } else { ProgressOutput::Text };
        let extends =
            Store::existing_manifest(out)?.is_some_and(|existing| has_same_points(&existing, experiment));
        let results =
            perform_missing_runs(out, manifest, RunOptions { jobs: self.jobs, progress_output, extends })?;
        report::write_report(&results, Vec::new(), out)?;
        Ok(results)
    }

    /// Returns the experiment that the flags describe.
    pub fn experiment(&self) -> Result<Experiment, Failure> {
        if self.transports.is_empty() {
            return Err(Failure::Usage(MISSING_TRANSPORTS.to_owned()));
        }
        match self.flags.sweep_setting() {
            None => {
                let mut source = self.flags.source(&self.transports)?;
                if let Some(interval) = &self.series {
                    source.set(&format!("--series {interval}"), "series", &format!("{interval:?}"))?;
                }
                Ok(Experiment::parse("compare", &source)?)
            }
            Some(sweep) => Err(Failure::Usage(format!(
                "--set {sweep}: `hol compare` uses one set of conditions; write the options to a file with `hol init`, add a [sweep], and run it with `hol run`"
            ))),
        }
    }
}

/// Returns the experiment with as many repetitions as the directory already contains. If the directory contains
/// other points or none, returns `first`.
fn resume_step(first: Experiment, out: &Path) -> Result<Experiment, Failure> {
    let existing = Store::existing_manifest(out)?.filter(|existing| has_same_points(existing, &first));
    let points = existing.map(|existing| existing.points);
    Ok(points.map_or(first.clone(), |points| Experiment { points, ..first }))
}

/// Returns whether the manifest and the experiment have the same points; the number of repetitions may differ.
fn has_same_points(existing: &Manifest, experiment: &Experiment) -> bool {
    existing.points.iter().map(|point| point.id).eq(experiment.points.iter().map(|point| point.id))
}

/// Runs an experiment, and returns the results without writing them.
pub fn run_experiment(
    experiment: &Experiment,
    archive: &Archive,
    jobs: Option<usize>,
    is_quiet: bool,
) -> Result<(Vec<PointResult>, RunResults), Failure> {
    let mut finished = RunResults::default();
    let results = run_unfinished(&mut finished, experiment, archive, jobs, is_quiet)?;
    Ok((results, finished))
}

/// Performs the runs of an experiment that are not in `finished`, and adds them to `finished`.
fn run_unfinished(
    finished: &mut RunResults,
    experiment: &Experiment,
    archive: &Archive,
    jobs: Option<usize>,
    is_quiet: bool,
) -> Result<Vec<PointResult>, Failure> {
    let plan = Plan::new([experiment]);
    let mut progress = Progress::new(if is_quiet { ProgressOutput::Quiet } else { ProgressOutput::Text });
    let stop = stop_on_interrupt()?;
    execute(&plan, finished, thread_count(jobs), stop, archive, |_, now, _| {
        progress.show(now);
        Ok(())
    })?;
    progress.finish();
    if stop.load(Ordering::Relaxed) && !plan.next_runs(finished).is_empty() {
        return Err(Failure::Failed("interrupted".to_owned()));
    }
    warn_of_engine(finished);
    Ok(plan.point_results(finished))
}

/// Returns an error if runs failed.
pub fn check_no_failures(finished: &RunResults) -> Result<(), Failure> {
    let failed = finished.failed().count();
    finished.failed().next().map_or(Ok(()), |first| {
        Err(Failure::Failed(format!(
            "{failed} runs failed and are not in the results above; the first: {first}"
        )))
    })
}

/// Describes the effect of a disruption of the path on each transport, and how the other transports differ from the
/// first.
pub fn describe_verdicts(cells: &[Cell]) -> String {
    let outages: String = cells.iter().filter_map(describe_outage).map(|sentence| sentence + "\n").collect();
    outages + &differences(cells)
}

fn differences(cells: &[Cell]) -> String {
    cells.iter().skip(1).map(|cell| verdict(main_metric(cells.iter()), cell, &cells[0]) + "\n").collect()
}

/// Returns the text output: the conditions, the table of results and the comparison.
fn format_results(results: &[PointResult], overrides: &str) -> String {
    let Some(first) = results.first() else { return String::new() };
    let mut text = describe_conditions(first, overrides) + "\n\n";
    text += &point_row::points_table("transport", results, |result| result.point.label.clone());
    text.push('\n');
    let cells: Vec<Cell> = results.iter().map(Cell::from).collect();
    text += &describe_verdicts(&cells);
    text += &describe_classes(&cells);
    text += "\nwhere the time goes (mean per message):\n";
    let rows: Vec<_> =
        cells.iter().map(|cell| (format!("  {}", cell.transport), describe_delay(cell))).collect();
    let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    rows.iter().for_each(|(label, parts)| text += &format!("{label:<width$}  {parts}\n"));
    let warnings = point_row::warnings(results);
    if !warnings.is_empty() {
        text += &format!("\n{warnings}");
    }
    let latencies: Vec<Distribution> = results.iter().map(PointResult::latency).collect();
    let curves: Vec<_> = results.iter().map(|r| r.point.label.as_str()).zip(&latencies).collect();
    text + "\n" + &ccdf::draw(&curves)
}

/// Returns, for each class of message sizes, a table and the differences from the first transport.
fn describe_classes(cells: &[Cell]) -> String {
    // For transports that do not carry the load, the sentences above suffice.
    let carries_load: Vec<bool> = cells.iter().map(|cell| cell.collapsed_runs() == 0).collect();
    let classes: Vec<_> = cells.iter().map(Cell::by_class).collect();
    let names = classes.first().into_iter().flatten().map(|(name, _)| *name);
    let describe = |(class, name): (usize, &str)| {
        let of_class = |of: &Vec<(&str, Cell)>| of.get(class).map(|(_, cell)| cell.clone());
        let all: Vec<Cell> = classes.iter().filter_map(of_class).collect();
        let carrying = classes.iter().zip(&carries_load).filter(|(_, carries)| **carries);
        let carrying: Vec<Cell> = carrying.filter_map(|(of, _)| of_class(of)).collect();
        let differences = differences(&carrying);
        let sentences = differences.lines().map(|line| prefix_with_class(name, line) + "\n");
        format!("\n{}\n{}", point_row::class_table(name, &all), sentences.collect::<String>())
    };
    names.enumerate().map(describe).collect()
}

/// Describes the components of the delay, if the world measures them.
fn describe_delay(cell: &Cell) -> String {
    match &cell.delay_breakdown {
        _ if cell.latency.completed() == 0 => "nothing completed".to_owned(),
        Some(parts) if cell.latency.completed() < cell.offered() => {
            describe_breakdown(parts) + " (messages that arrived)"
        }
        Some(parts) => describe_breakdown(parts),
        None => "not available: sockets do not report when packets are sent or arrive".to_owned(),
    }
}

/// Describes the settings of the path. A setting that is the same in both directions is given once.
fn describe_path(network: &NetworkSpec) -> String {
    let both = network.directions();
    let values = |of: fn(&Settings) -> String, same: &str| match both.each_ref().map(of) {
        [up, down] if up == down => up + same,
        [up, down] => format!("{up} up and {down} down"),
    };
    let delay = values(|settings| settings.delay.to_string(), " each way");
    let loss = values(|settings| settings.loss.to_string(), "");
    let rate = values(|settings| settings.rate.to_string(), "");
    format!("{delay}, loss {loss}, {rate}, queue {}", values(|settings| settings.queue.to_string(), ""))
}

/// Describes the conditions in one sentence.
fn describe_conditions(result: &PointResult, overrides: &str) -> String {
    let point = &result.point;
    let network = &point.network;
    let rate = point.workload.rate().map_or(String::new(), |rate| format!(" at {rate}"));
    let world = if point.world.is_default() { String::new() } else { format!(" in {}", point.world) };
    let repetitions = match result.runs.len() {
        1 => "one repetition".to_owned(),
        n => format!("{n} repetitions"),
    };
    let opened = point.world.open().ok();
    let path = opened.as_ref().and_then(|world| world.existing_path()).unwrap_or_else(|| {
        let maker = opened.and_then(|world| world.path_maker()).map_or(String::new(), |maker| maker + ", ");
        format!("{maker}{}{overrides}", describe_path(network))
    });
    let (messages, seed) = (group_digits(result.offered()), point.seed);
    format!("{}{rate}{world}, {path}; {messages} messages in {repetitions}, seed {seed}", point.workload)
}
