//! `hol reproduce`: runs a study.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use hol_lab::{Experiment, Manifest, Plan, Repetitions, Study, WorldName};
use hol_report::claims::{JudgedClaim, Verdict};

use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::point_row::{SweepRow, json};
use crate::progress_args::ProgressArgs;
use crate::report;
use crate::run::describe_cost;
use crate::run_plan::{RunOptions, check_no_failures, perform_missing_runs};
use crate::terminal::{group_digits, note, print};

const EXAMPLES: &str = "\
Examples:
  hol reproduce ikr53 --quick          a twentieth of the messages; takes seconds
  hol reproduce ikr53                  all of them
  hol reproduce tickets --only pion218 one public report, compared with our numbers
  hol list                             all studies";

/// Run a study: perform all its experiments, draw its figures, numbered as in the paper, and give a verdict on each of
/// its claims.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct Reproduce {
    /// Name of the study, such as ikr53
    study: String,
    /// Run a twentieth of the messages, for a first look in seconds
    #[arg(long)]
    quick: bool,
    /// Number of repetitions; the length of a run does not change. Choose few in the kernel world, which is slow
    /// [default: the study's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    repetitions: Option<Repetitions>,
    /// Result directory [default: results/STUDY, with the other options appended]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of runs in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Show the points and their cost without running them
    #[arg(long)]
    plan: bool,
    /// Where to run: model (simulated), kernel (Linux in a virtual machine; kernel:6.1 chooses a version, kernel:uml is
    /// User-Mode Linux) or live (this machine's sockets)
    #[arg(long, default_value = "model")]
    world: WorldName,
    /// Run only this experiment of the study, such as exp1; may be repeated
    #[arg(long, value_name = "EXPERIMENT")]
    only: Vec<String>,
    /// Print a JSON object for each point, one per line, in the order of the plan
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress_args: ProgressArgs,
}

impl Reproduce {
    /// Performs the missing runs, then writes the report.
    pub fn run(&self) -> Result<(), Failure> {
        self.progress_args.end_with_parent()?;
        let study = Study::load(&self.study, self.quick)?;
        if study.file("claims.toml").is_none() {
            let problem = format!("{0} has no claims; use `hol validate {0}`", study.name);
            return Err(Failure::Usage(problem));
        }
        let out = self.out.clone().unwrap_or_else(|| self.default_directory(&study));
        let experiments = self.in_world(self.selected_experiments(&study)?)?;
        if self.plan {
            print(&describe_cost(&Plan::new(&experiments), self.jobs, self.json));
            return Ok(());
        }
        let command = std::env::args().collect();
        let manifest = Manifest::new(study.title, Some(study.name), &experiments, command);
        let options = RunOptions {
            jobs: self.jobs,
            progress_output: self.progress_args.progress_output(self.json),
            extends: false,
        };
        let results = perform_missing_runs(&out, manifest, options)?;
        let (page, report) = report::write_report(&results, Vec::new(), &out)?;
        if self.json {
            results.points.iter().for_each(|point| print(&json(&SweepRow::of(point))));
        } else {
            let points = group_digits(results.points.len() as u64);
            print(&format!("{}\n{points} points, digest {}\n\nfindings:\n", study.title, results.digest()));
            for (verdict, count) in report.verdict_counts().into_iter().filter(|(_, count)| *count > 0) {
                print(&format!("{count:>5}  {}\n", describe_verdict(verdict)));
            }
            report.judged_claims.iter().filter(|judged| judged.compares_numbers()).for_each(print_numbers);
            print(&format!("\nreport: {}\n", page.display()));
        }
        check_no_failures(&results, &out)
    }

    /// Returns the default result directory. Its name contains the family of the world, --quick, --only and --repetitions.
    fn default_directory(&self, study: &Study) -> PathBuf {
        let world = if self.world.is_default() { String::new() } else { format!("-{}", self.world.family()) };
        let quick = if self.quick { "-quick" } else { "" };
        let only: String = self.only.iter().map(|name| format!("-{name}")).collect();
        let repetitions = self.repetitions.map_or(String::new(), |count| format!("-{count}-repetitions"));
        PathBuf::from("results").join(format!("{}{world}{quick}{only}{repetitions}", study.name))
    }

    /// Returns the experiments that --only selects, with the requested repetitions.
    fn selected_experiments(&self, study: &Study) -> Result<Vec<Experiment>, Failure> {
        let known = || study.experiments.iter().map(|(name, _)| name.as_str());
        if let Some(unknown) = self.only.iter().find(|name| !known().any(|known| known == *name)) {
            let known = known().collect::<Vec<_>>().join(", ");
            return Err(Failure::Usage(format!(
                "--only {unknown}: unknown experiment; {} has {known}",
                study.name
            )));
        }
        let wanted = |name| self.only.is_empty() || self.only.contains(name);
        let chosen = study.experiments.iter().filter(|(name, _)| wanted(name));
        let ranged = self.repetitions.filter(|repetitions| repetitions.min < repetitions.max);
        let precise =
            |(_, experiment): &(String, Experiment)| experiment.points.iter().all(|p| p.precision.is_some());
        if let Some(range) =
            ranged.filter(|_| !study.experiments.iter().filter(|(name, _)| wanted(name)).all(precise))
        {
            let problem = format!(
                "--repetitions {range}: a range needs the key `precision`, which {} does not have; give one number",
                study.name
            );
            return Err(Failure::Usage(problem));
        }
        let repeated = |experiment: Experiment| match self.repetitions {
            Some(repetitions) => experiment.with_repetitions(|_| repetitions),
            None => experiment,
        };
        Ok(chosen.map(|(_, experiment)| repeated(experiment.clone())).collect())
    }

    /// Moves the experiments to the requested world; reports the points that this world does not support.
    fn in_world(&self, experiments: Vec<Experiment>) -> Result<Vec<Experiment>, Failure> {
        let mut placed = Vec::new();
        let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
        for experiment in experiments {
            let points = experiment.points.len();
            if self.world.is_default() && experiment.names_a_world() {
                let needed = experiment.points[0].world.family();
                let why = format!("experiment {} needs --world {needed}", experiment.name);
                *left_out.entry(why).or_default() += points;
                continue;
            }
            let (experiment, refused) = experiment.in_world(&self.world)?;
            placed.push(experiment);
            refused.into_iter().for_each(|why| *left_out.entry(why).or_default() += 1);
        }
        if placed.iter().all(|experiment| experiment.points.is_empty()) {
            let why: Vec<String> = left_out.into_keys().collect();
            return Err(Failure::Usage(format!("no points are left to run: {}", why.join("; "))));
        }
        for (why, points) in left_out {
            note!("left out {points} points: {why}");
        }
        Ok(placed)
    }
}

/// Prints the numbers of a paper next to the measured ones, unless none of the points was measured.
fn print_numbers(judged: &JudgedClaim) {
    let findings = judged.findings.iter().map(|(_, finding)| finding);
    let rows: Vec<&String> = findings.flat_map(|finding| &finding.rows).collect();
    if !rows.is_empty() {
        print(&format!("\n{}: {}\n", judged.claim.id, describe_verdict(judged.verdict)));
        rows.into_iter().for_each(|row| print(&format!("  {row}\n")));
    }
}

const fn describe_verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::PeriodOnly => "reproduced only with the settings of the paper's time",
        Verdict::OpenToday => "reproduced with the settings of the paper's time; undecided with today's",
        Verdict::NotToday => {
            "not reproduced today; undecided, or not available in this world, with the stack of the paper's time"
        }
        Verdict::NotReproduced => "not reproduced",
        Verdict::NotDecidable => "not decided here",
    }
}
