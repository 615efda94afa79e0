//! `hol validate --random`: compares random scenarios in two worlds.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use hol_differential::{
    Comparison, Coverage, Generator, RandomScenario, RunValues, Tally, Verdict, align, compare, shrink, trace,
};
use hol_lab::{LabError, WorldName};
use hol_scenario::World;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::point_row::json;
use crate::run_plan::{stop_on_interrupt, thread_count};
use crate::terminal::{note, print, table};

use super::Validate;

/// Maximum number of scenarios that the text output lists.
const MAX_SHOWN: usize = 12;

/// The scenarios to compare.
#[derive(Debug, Args)]
pub struct RandomArgs {
    /// Compare N random scenarios, packet by packet, drawn from the keys, options and workloads that both
    /// worlds support
    #[arg(long, value_name = "N", conflicts_with_all = ["what", "quick", "repetitions", "wheres", "throughput"])]
    random: Option<u64>,
    /// Seed of the random scenarios
    #[arg(long, value_name = "S", default_value_t = 1, requires = "random", conflicts_with = "what")]
    seed: u64,
    /// Compare only scenarios of this transport or workload, such as sctp or bulk; `discipline` selects those with a
    /// queue discipline, `events` those whose path changes or fails during the run, `background` those with other flows, `l4s` TCP
    /// over DualPI2, which needs --world kernel:7.3
    #[arg(long, value_name = "NAME", requires = "random", conflicts_with = "what")]
    only: Option<String>,
    /// First world of the comparison; if both worlds are kernels, scenarios include MPTCP, which the model does not support
    #[arg(long, value_name = "WORLD", default_value = "model", requires = "random", conflicts_with = "what")]
    first: WorldName,
    /// Shrink each scenario whose values differ: write the smallest one whose values still differ, with the traces of
    /// both worlds
    #[arg(long, requires = "random", conflicts_with = "what")]
    shrink: bool,
    /// Also write the traces of scenarios whose values agree but whose packets differ
    #[arg(long, requires = "random", conflicts_with = "what")]
    traces: bool,
}

/// The result of comparing a scenario, as recorded in the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Outcome {
    /// The number of the scenario.
    number: u64,
    family: String,
    judged: JudgedBy,
    /// Whether the values in both worlds agree.
    agrees: bool,
    /// A description of the first difference between the packets; `None` if there is none.
    difference: Option<String>,
    /// The values in the first and in the second world.
    values: Option<[RunValues; 2]>,
    /// Why a world could not run the scenario; `None` if both did.
    problem: Option<String>,
}

/// How the two worlds were compared for a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum JudgedBy {
    Packets,
    Ranks,
    Refused,
    Failed,
}

impl Outcome {
    fn of(number: u64, comparison: &Comparison) -> Self {
        let (judged, problem) = match &comparison.verdict {
            Verdict::Packets { .. } => (JudgedBy::Packets, None),
            Verdict::Ranks { .. } => (JudgedBy::Ranks, None),
            Verdict::Refused(problem) => (JudgedBy::Refused, Some(problem.clone())),
            Verdict::Failed(problem) => (JudgedBy::Failed, Some(problem.clone())),
        };
        Self {
            number,
            family: comparison.scenario.family(),
            judged,
            agrees: comparison.verdict.agrees(),
            difference: comparison.verdict.difference().map(|difference| difference.category()),
            values: comparison.values,
            problem,
        }
    }

    /// Returns whether the scenario counts. A failed run counts as a disagreement; a scenario that a world refused
    /// does not count.
    fn is_counted(&self) -> bool {
        self.judged != JudgedBy::Refused
    }

    fn has_same_packets(&self) -> bool {
        self.judged == JudgedBy::Packets && self.difference.is_none()
    }
}

/// A comparison of random scenarios that is in progress.
struct Session<'s> {
    generator: Generator<'s>,
    worlds: [&'s dyn World; 2],
    out: &'s Path,
    options: &'s RandomArgs,
}

impl RandomArgs {
    /// Returns the number of random scenarios; `None` without --random.
    pub fn count(&self) -> Option<u64> {
        self.random
    }

    /// Compares the remaining scenarios until all are done or the user interrupts, then prints the result.
    pub fn run(&self, count: u64, flags: &Validate) -> Result<(), Failure> {
        if let Some(only) = self.only.as_ref().filter(|only| !Generator::names().contains(only)) {
            let problem = format!(
                "--only {only}: unknown transport or workload; use one of {}",
                Generator::names().join(", ")
            );
            return Err(Failure::Usage(problem));
        }
        let open = |world: &WorldName| world.open().map_err(|e| Failure::from(LabError::from(e)));
        let second = flags.world.clone().unwrap_or_else(|| WorldName::of("kernel", "uml"));
        let (model, other) = (open(&self.first)?, open(&second)?);
        for (option, name, world) in [("first", &self.first, &model), ("world", &second, &other)] {
            if !world.is_repeatable() {
                let problem = format!(
                    "--{option} {name}: runs of this world cannot be repeated exactly; use kernel or kernel:uml"
                );
                return Err(Failure::Usage(problem));
            }
        }
        let default = PathBuf::from(format!("results/random-{}", self.seed));
        let out = flags.out.as_deref().unwrap_or(&default);
        fs::create_dir_all(out).map_err(|e| cannot_write(out, &e))?;
        let session = Session {
            generator: Generator::new(self.seed, self.only.clone(), vec![model.as_ref(), other.as_ref()]),
            worlds: [model.as_ref(), other.as_ref()],
            out,
            options: self,
        };
        let outcomes = session.perform_missing_runs(count, thread_count(flags.jobs))?;
        if flags.json {
            outcomes.iter().for_each(|outcome| print(&json(outcome)));
        } else {
            print(&session.summary(&outcomes)?);
        }
        if (outcomes.len() as u64) < count {
            return Err(Failure::Failed("interrupted; run the same command again to continue".to_owned()));
        }
        let all = outcomes.iter().filter(|outcome| outcome.is_counted()).count();
        let agree = outcomes.iter().filter(|outcome| outcome.agrees).count();
        if all > 0 && agree as f64 >= flags.require.value() * all as f64 {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "{agree} of {all} scenarios agree, fewer than --require {}",
            flags.require
        )))
    }
}

impl Session<'_> {
    /// Returns the path of the journal. It names worlds, seed and --only, so that a different comparison does not
    /// continue it.
    fn journal(&self) -> PathBuf {
        let only = self.options.only.as_ref().map(|only| format!("-{only}")).unwrap_or_default();
        let worlds = self.worlds.map(|world| world.name().replace([':', '/'], "-"));
        let first = if self.options.first.is_default() { String::new() } else { format!("{}-", worlds[0]) };
        self.out.join(format!("comparisons-{first}{}-{}{only}.jsonl", worlds[1], self.options.seed))
    }

    fn perform_missing_runs(&self, count: u64, threads: usize) -> Result<Vec<Outcome>, Failure> {
        let stop = stop_on_interrupt()?;
        let path = self.journal();
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let mut outcomes: BTreeMap<u64, Outcome> = BTreeMap::new();
        for outcome in kept.lines().filter_map(|line| serde_json::from_str::<Outcome>(line).ok()) {
            outcomes.insert(outcome.number, outcome);
        }
        outcomes.retain(|number, _| *number < count);
        let wanted: Vec<u64> = (0..count).filter(|number| !outcomes.contains_key(number)).collect();
        let mut file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(|e| cannot_write(&path, &e))?;
        // Completes a line that a full disk cut off.
        if !kept.is_empty() && !kept.ends_with('\n') {
            file.write_all(b"\n").map_err(|e| cannot_write(&path, &e))?;
        }
        note!("{} scenarios to compare; their results go to {}", wanted.len(), self.out.display());
        let next = AtomicU64::new(0);
        let shared = Mutex::new((file, outcomes, None::<Failure>));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed) as usize;
                        let Some(number) = wanted.get(index) else { return };
                        let done = self.compare(*number);
                        let mut shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        let (file, outcomes, failure) = &mut *shared;
                        let kept = done.and_then(|outcome| {
                            file.write_all(json(&outcome).as_bytes()).map_err(|e| cannot_write(&path, &e))?;
                            outcomes.insert(*number, outcome);
                            Ok(())
                        });
                        if let Err(problem) = kept {
                            *failure = Some(problem);
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let (_, outcomes, failure) = shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.map_or(Ok(outcomes.into_values().collect()), Err)
    }

    fn scenario(&self, number: u64) -> Result<(RandomScenario, Vec<(String, String)>), Failure> {
        self.generator.scenario(number).map_err(Failure::Usage)
    }

    fn compare(&self, number: u64) -> Result<Outcome, Failure> {
        let [model, other] = self.worlds;
        let comparison = compare(&self.scenario(number)?.0, model, other);
        let outcome = Outcome::of(number, &comparison);
        let differs = outcome.is_counted() && !outcome.agrees;
        if differs || (self.options.traces && outcome.difference.is_some()) {
            let shrinks = self.options.shrink && outcome.judged != JudgedBy::Failed;
            self.write(&if shrinks { shrink(comparison, model, other) } else { comparison })?;
        }
        Ok(outcome)
    }

    /// Writes the experiment file of a difference, and both traces side by side if packets were compared.
    fn write(&self, comparison: &Comparison) -> Result<(), Failure> {
        let scenario = &comparison.scenario;
        let file = self.out.join(format!("{}.toml", scenario.name));
        let head = format!("# {}\n# {}\n", scenario.family(), scenario.command());
        fs::write(&file, head + &scenario.experiment_text()?).map_err(|e| cannot_write(&file, &e))?;
        if comparison.verdict.difference().is_none() {
            return Ok(());
        }
        let points = [scenario.point_with_assumed_options()?, scenario.point()?];
        let traces = points.iter().zip(self.worlds).map(|(point, world)| trace(point, world));
        let [first, second] = <[_; 2]>::try_from(traces.collect::<Vec<_>>()).expect("there are two worlds");
        let (Ok(first), Ok(second)) = (first, second) else { return Ok(()) };
        let path = self.out.join(format!("{}.txt", scenario.name));
        let mut text = File::create(&path).map_err(|e| cannot_write(&path, &e))?;
        for line in align(&first, &second) {
            writeln!(text, "{line}").map_err(|e| cannot_write(&path, &e))?;
        }
        Ok(())
    }

    /// Returns the summary as text. Also writes two files: the keys that the scenarios covered, and why worlds
    /// refused other keys.
    fn summary(&self, outcomes: &[Outcome]) -> Result<String, Failure> {
        let mut coverage = Coverage::default();
        for outcome in outcomes {
            let (scenario, refused) = self.scenario(outcome.number)?;
            if outcome.is_counted() {
                let same = (outcome.judged == JudgedBy::Packets).then(|| outcome.has_same_packets());
                coverage.add(&scenario, outcome.agrees, same);
            }
            refused.into_iter().for_each(|(key, problem)| coverage.record_refusal(key, problem));
        }
        let refused: String =
            coverage.refused().map(|(key, problem)| format!("{key}: {problem}\n")).collect();
        let path = self.out.join("refused.txt");
        fs::write(&path, &refused).map_err(|e| cannot_write(&path, &e))?;
        let covered = self.out.join("covered.txt");
        fs::write(&covered, table(&key_rows(&coverage))).map_err(|e| cannot_write(&covered, &e))?;
        let mut text = table(&family_rows(outcomes)) + &describe_first_differences(outcomes);
        text += &list_disagreements(outcomes, self.out, self.options.seed);
        text += &format!(
            "\n{} keys and options were used in scenarios that both worlds ran, in {} combinations of transport, \
            workload and network condition; {} lists the keys and options\n{} others were rejected in every scenario; {} has the \
            reasons\n",
            coverage.key_count(),
            coverage.pair_count(),
            covered.display(),
            refused.lines().count(),
            path.display(),
        );
        Ok(text)
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{}: cannot write: {error}", path.display()))
}

/// Returns, for each key and option, the results of the scenarios that contain it.
fn key_rows(coverage: &Coverage) -> Vec<Vec<String>> {
    let heads = ["key", "scenarios", "values agree", "packets compared", "the same"];
    let row = |(key, tally): (&str, Tally)| {
        let counts = [tally.scenarios, tally.agree, tally.compared, tally.same];
        [key.to_owned()].into_iter().chain(counts.map(|count| count.to_string())).collect()
    };
    [heads.map(str::to_owned).to_vec()].into_iter().chain(coverage.tallies().map(row)).collect()
}

/// Returns, for each family (transport and workload), how many scenarios were compared, how many agree in values, and
/// how many have the same packets.
fn family_rows(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let heads = ["family", "scenarios", "values agree", "", "packets compared", "the same", ""];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let mut families: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.is_counted()) {
        families.entry(&outcome.family).or_default().push(outcome);
    }
    let all: Vec<&Outcome> = families.values().flatten().copied().collect();
    let row = |name: &str, outcomes: &[&Outcome]| {
        let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
        let percent = |part: usize, whole: usize| match whole {
            0 => String::new(),
            // Rounded down, so that 995 of 1,000 is not 100 %.
            _ => format!("{} %", 100 * part / whole),
        };
        let (agree, same) = (count(|outcome| outcome.agrees), count(Outcome::has_same_packets));
        let compared = count(|outcome| outcome.judged == JudgedBy::Packets);
        vec![
            name.to_owned(),
            outcomes.len().to_string(),
            agree.to_string(),
            percent(agree, outcomes.len()),
            compared.to_string(),
            same.to_string(),
            percent(same, compared),
        ]
    };
    rows.extend(families.iter().map(|(family, outcomes)| row(family, outcomes)));
    rows.push(row("all", &all));
    rows
}

/// Returns the kinds of the first differences between packets, the most frequent first.
fn describe_first_differences(outcomes: &[Outcome]) -> String {
    let mut causes: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for outcome in outcomes {
        let protocol = outcome.family.split(' ').next().unwrap_or_default();
        let difference = outcome.difference.as_deref();
        difference
            .into_iter()
            .for_each(|cause| causes.entry((protocol, cause)).or_default().push(outcome.number));
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, numbers)| std::cmp::Reverse(numbers.len()));
    let line = |((protocol, cause), numbers): &((&str, &str), Vec<u64>)| {
        let first: Vec<String> = numbers.iter().take(4).map(u64::to_string).collect();
        format!("{:>5}  {protocol} {cause}, as in {}\n", numbers.len(), first.join(", "))
    };
    let lines: String = causes.iter().take(MAX_SHOWN).map(line).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\nnumber of scenarios by the first packet that differs\n{lines}")
    }
}

/// Lists scenarios whose values differ, and those that failed.
fn list_disagreements(outcomes: &[Outcome], out: &Path, seed: u64) -> String {
    let differ = |outcome: &&Outcome| outcome.values.is_some() && !outcome.agrees;
    let mut text = String::new();
    for outcome in outcomes.iter().filter(differ).take(MAX_SHOWN) {
        let path = out.join(format!("random-{seed}-{}.toml", outcome.number));
        text += &format!("\n{} ({}), first | second world: ", path.display(), outcome.family);
        if let Some([model, other]) = outcome.values {
            let ms = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
            text += &format!(
                "median {} | {} ms, p99 {} | {} ms, {:.0} | {:.0} kbit/s, {} | {} failed",
                ms(model.median_ms),
                ms(other.median_ms),
                ms(model.p99_ms),
                ms(other.p99_ms),
                model.throughput_kbps,
                other.throughput_kbps,
                model.failed,
                other.failed,
            );
        }
    }
    let more = outcomes.iter().filter(differ).count().saturating_sub(MAX_SHOWN);
    if more > 0 {
        text += &format!("\nand {more} more scenarios whose values differ");
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.judged == JudgedBy::Failed).take(MAX_SHOWN) {
        let problem =
            outcome.problem.as_deref().and_then(|problem| problem.lines().next()).unwrap_or_default();
        text += &format!("\nscenario {} ({}) failed: {problem}", outcome.number, outcome.family);
    }
    if text.is_empty() { text } else { text + "\n" }
}
