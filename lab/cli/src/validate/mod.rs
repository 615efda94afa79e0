//! `hol validate`: compares the model with the kernel, point by point or at random.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;
use hol_base::Ratio;
use hol_differential::point_to_compare;
use hol_lab::Metric;
use hol_lab::{
    BothWorlds, Experiment, Manifest, Plan, Point, Repetitions, Results, RunResults, Source, Store, Study,
    WorldName,
};
use hol_measure::ConfidenceInterval;
use hol_report::validation::{ComparedPoint, MedianComparison, Validation, format_median};

use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::point_row::{json, three_digits};
use crate::progress::ProgressOutput;
use crate::run_plan::{check_no_failures, execute_plan, stop_on_interrupt};
use crate::terminal::{group_digits, note, print, table};

mod random;

use random::RandomArgs;

/// Maximum number of points in the text output; the result files contain all points.
const MAX_SHOWN: usize = 25;

/// Compare the model with the kernel: the points of a study or an experiment, or random scenarios
///
/// Each world is summarised by its median run, which rare collapses do not change; a rank test shows whether
/// the values of one world are higher.
///
/// Points whose stack is not the kernel's are left out. Finished runs are kept, and the same command
/// continues after an interruption; the model's runs are repeated if this program has changed.
#[derive(Debug, Args)]
pub struct Validate {
    /// Name of a study, such as fidelity, or an experiment file
    #[arg(value_name = "STUDY|FILE", required_unless_present = "random")]
    what: Option<String>,
    #[command(flatten)]
    random: RandomArgs,
    /// Run a twentieth of the messages, for a first look
    #[arg(long)]
    quick: bool,
    /// Number of repetitions in the kernel world; the model runs ten times as many. The length of a run does not change
    /// [default: the file's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    repetitions: Option<Repetitions>,
    /// Compare only points of this experiment, of this transport, or with this value of a swept key, as in
    /// transport=TCP or loss=1%; may be repeated
    #[arg(long = "where", value_name = "KEY=VALUE")]
    wheres: Vec<String>,
    /// World with which the model is compared, such as kernel:uml or kernel:6.1 [default: kernel; kernel:uml for
    /// random scenarios]
    #[arg(long, value_name = "WORLD")]
    world: Option<WorldName>,
    /// Former form of --world kernel:RELEASE; RELEASE may be the first part of a release, such as 6.1
    #[arg(long, value_name = "RELEASE", hide = true, conflicts_with_all = ["world", "random"])]
    kernel: Option<String>,
    /// Directory for the results of both worlds [default: results/validate-NAME[-KERNEL][-quick], or results/random-SEED with --random]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of runs in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Compare the throughput instead of the response times; the tolerance is 3 %, or 10 % with background flows
    #[arg(long)]
    throughput: bool,
    /// Fail if less than this share of the points or scenarios agrees
    #[arg(long, value_name = "SHARE", default_value = "90%")]
    require: Ratio,
    /// Print a JSON object for each point (the worst first) or each random scenario, one per line
    #[arg(long)]
    json: bool,
}

/// The study or the user's experiment with which the model is validated.
struct ValidationInput {
    name: String,
    title: String,
    /// The study; `None` if the input is an experiment, or a study without claims.
    study: Option<&'static str>,
    experiments: Vec<Experiment>,
}

impl Validate {
    /// Returns the world with which the model is compared if points of a study or experiment are compared.
    fn world_of_points(&self) -> Result<WorldName, Failure> {
        let kernel = WorldName::of("kernel", self.kernel.as_deref().unwrap_or_default());
        let world = self.world.clone().unwrap_or(kernel);
        if world.family() != "kernel" {
            let problem =
                "an experiment file is validated against a kernel; use kernel, kernel:uml or kernel:RELEASE";
            return Err(Failure::Usage(format!("--world {world}: {problem}")));
        }
        Ok(world)
    }

    /// Performs the missing runs in both worlds, then reports the differences.
    pub fn run(&self) -> Result<(), Failure> {
        if let Some(count) = self.random.count() {
            return self.random.run(count, self);
        }
        let what = self.what.as_deref().expect("clap requires it without --random");
        let ValidationInput { name, title, study, experiments } = self.load_input(what)?;
        let repeated = |experiment: Experiment| match self.repetitions {
            Some(repetitions) => experiment.with_repetitions(|_| repetitions),
            None => experiment,
        };
        let experiments = experiments.into_iter().map(repeated).collect();
        let world = self.world_of_points()?;
        let mut both = BothWorlds::of(experiments, &world)?;
        for (model, kernel) in both.model.iter_mut().zip(&both.kernel) {
            for (model, kernel) in model.points.iter_mut().zip(&kernel.points) {
                *model = point_to_compare(model, &kernel.world.to_string());
            }
        }
        both.refused.iter().for_each(|point| note!("left out: {point}"));
        let selected = self.selection(&both)?;
        let quick = if self.quick { "-quick" } else { "" };
        // The model's runs depend on the kernel, so each kernel has its own directory.
        let variant =
            if world.variant().is_empty() { String::new() } else { format!("-{}", world.variant()) };
        let default = || PathBuf::from(format!("results/validate-{name}{variant}{quick}"));
        let out = self.out.clone().unwrap_or_else(default);

        let stop = stop_on_interrupt()?;
        let manifest = |experiments: &[Experiment]| {
            Manifest::new(&title, study, experiments, std::env::args().collect())
        };
        let model = manifest(&both.model).pinned_to_this_build()?;
        let model =
            self.perform_missing_runs(Store::open_or_replace(&out.join("model"), model)?, &selected)?;
        let kernel = manifest(&both.kernel);
        let kernel = self.perform_missing_runs(Store::extend(&out.join("kernel"), kernel)?, &selected)?;

        // The page covers all points with results; the text and the verdict cover only the selected points.
        let metric = if self.throughput { Metric::Throughput } else { Metric::ResponseTime };
        Validation::of_results(&title, &kernel, &model, metric).write(&out).map_err(Failure::failed)?;
        let whole = check_no_failures(&model, &out.join("model"))
            .and_then(|()| check_no_failures(&kernel, &out.join("kernel")));
        let [kernel, model] = [kernel, model].map(|results| restrict(results, &selected));
        let validation = Validation::of_results(&title, &kernel, &model, metric);
        if self.json {
            validation.points.iter().for_each(|compared| print(&json(&point_as_json(compared))));
        } else {
            print(&format_validation(&validation));
            print(&format!(
                "\n{} contains the results of every point; the report is {}\n",
                out.display(),
                out.join("validation.html").display()
            ));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Failed("interrupted; run the same command again to continue".to_owned()));
        }
        whole.and_then(|()| self.verdict(&validation))
    }

    /// Loads the study or experiment that `what` names.
    fn load_input(&self, what: &str) -> Result<ValidationInput, Failure> {
        let path = Path::new(what);
        if path.extension().is_some_and(|ending| ending == "toml") {
            let source = Source::read(path)?;
            let experiment = Experiment::parse(&source.stem(), &source)?;
            let experiment = if self.quick { experiment.quick() } else { experiment };
            let title = experiment.title.clone();
            return Ok(ValidationInput {
                name: source.stem(),
                title,
                study: None,
                experiments: vec![experiment],
            });
        }
        let study = Study::load(what, self.quick)?;
        // Only a study with claims has a section about them.
        let claiming = study.file("claims.toml").map(|_| study.name);
        let experiments = study.experiments.into_iter().map(|(_, experiment)| experiment).collect();
        Ok(ValidationInput {
            name: study.name.to_owned(),
            title: study.title.to_owned(),
            study: claiming,
            experiments,
        })
    }

    /// Returns for each point, in their order, whether `--where` selects it.
    fn selection(&self, both: &BothWorlds) -> Result<Vec<bool>, Failure> {
        let points: Vec<&Point> = both.kernel.iter().flat_map(|experiment| &experiment.points).collect();
        let mut wheres = Vec::new();
        for text in &self.wheres {
            let usage = |problem: &str| Failure::Usage(format!("--where {text}: {problem}"));
            let (key, value) =
                text.split_once('=').ok_or_else(|| usage("write key=value, as in transport=TCP"))?;
            if !points.iter().any(|point| point.has_key_value(key, value) == Some(true)) {
                return Err(usage("no point matches; keys are experiment, transport and the swept keys"));
            }
            wheres.push((key, value));
        }
        // Values of the same key are alternatives; different keys all have to match.
        let takes = |point: &&Point| {
            wheres.iter().all(|(key, _)| {
                let mut values = wheres.iter().filter(|(other, _)| other == key);
                values.any(|(key, value)| point.has_key_value(key, value) == Some(true))
            })
        };
        Ok(points.iter().map(takes).collect())
    }

    /// Performs the missing runs of the chosen points until all are done or the user interrupts.
    fn perform_missing_runs(
        &self,
        (mut store, mut finished): (Store, RunResults),
        selected: &[bool],
    ) -> Result<Results, Failure> {
        let world = store.manifest().world.clone();
        let points = store.manifest().points.iter().zip(selected).filter(|(_, selected)| **selected);
        let plan = Plan::of_points(points.map(|(point, _)| point.clone()).collect());
        let wanted = plan.next_runs(&finished).len() as u64;
        note!(
            "{world}: {} runs to perform; their results go to {}",
            group_digits(wanted),
            store.dir().display()
        );
        execute_plan(&plan, &mut store, &mut finished, self.jobs, ProgressOutput::Text)?;
        Ok(store.write_tables(&finished)?)
    }

    fn verdict(&self, validation: &Validation) -> Result<(), Failure> {
        let tally = validation.tally();
        if tally.points > 0 && tally.share() >= self.require.value() {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "{} of {} points agree, fewer than --require {}",
            tally.agree, tally.points, self.require
        )))
    }
}

/// Returns the results of only the selected points.
fn restrict(mut results: Results, selected: &[bool]) -> Results {
    let mut selected = selected.iter();
    results.points.retain(|_| selected.next() == Some(&true));
    results
}

/// Returns a table of the worst points, and how many agree.
fn format_validation(validation: &Validation) -> String {
    let judged: &[&str] = match validation.metric {
        Metric::Throughput => &["kernel kbit/s", "model", "difference", "kernel faster"],
        _ => &[
            "kernel mean",
            "model",
            "difference",
            "kernel slower",
            "kernel p99",
            "model",
            "difference",
            "kernel slower",
        ],
    };
    let heads = [&["point (worst first; median runs)"], judged, &["collapsed", ""]].concat();
    let mut rows = vec![heads.into_iter().map(str::to_owned).collect()];
    rows.extend(validation.points.iter().take(MAX_SHOWN).map(row));
    let mut text = table(&rows);
    let more = validation.points.len().saturating_sub(MAX_SHOWN);
    if more > 0 {
        text += &format!("… and {more} more points with smaller differences\n");
    }
    let tally = validation.tally();
    text += &format!("\n{}; {}\n", tally.describe_agreement(), tally.describe_certainty());
    let rank = validation.describe_rank();
    if !rank.is_empty() {
        text += &format!("{rank}\n");
    }
    if validation.missing > 0 {
        text += &format!("{} points do not have runs in both worlds yet\n", validation.missing);
    }
    text
}

/// Returns the JSON object of a point, with the values that were compared.
fn point_as_json(compared: &ComparedPoint) -> serde_json::Value {
    let bounds = |ConfidenceInterval { value, low, high }| serde_json::json!({ "value": value, "low": low, "high": high });
    let check = |check: &Option<MedianComparison>| {
        check.as_ref().map(|check| {
            serde_json::json!({
                "kernel": bounds(check.kernel),
                "model": bounds(check.model),
                "difference": bounds(check.difference),
                "difference_percent": bounds(check.percent()),
                "tolerance": check.tolerance,
                "kernel_superiority": check.ranks.superiority,
                "rank_p": check.ranks.p,
                "agrees": check.agrees(),
            })
        })
    };
    let ComparedPoint { point, collapses, wasserstein_ms, .. } = compared;
    serde_json::json!({
        "point": point.to_string(),
        "id": point.id,
        "agrees": compared.agrees(),
        "says_little": compared.is_imprecise(),
        "mean_ms": check(&compared.mean),
        "p99_ms": check(&compared.p99),
        "throughput_kbps": check(&compared.throughput),
        "collapsed": { "kernel": collapses.kernel.0, "model": collapses.model.0, "p": collapses.p_value() },
        "wasserstein_ms": wasserstein_ms,
    })
}

fn row(compared: &ComparedPoint) -> Vec<String> {
    let ComparedPoint { point, kernel, model, .. } = compared;
    let mut row = vec![point.to_string()];
    for check in compared.judged_checks() {
        row.extend(check.as_ref().map_or(["-", "-", "-", "-"].map(str::to_owned), check_cells));
    }
    row.extend([format!("{}/{}", kernel.collapsed, model.collapsed), compared.verdict().to_owned()]);
    row
}

fn check_cells(check: &MedianComparison) -> [String; 4] {
    let off = format!("{:+.1} % ({:.1}×)", check.percent().value, check.excess());
    [format_median(check.kernel), three_digits(check.model.value), off, check.format_ranks()]
}
