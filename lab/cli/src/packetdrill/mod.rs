//! `hol packetdrill`: plays packetdrill scripts against the model's endpoints, or with packetdrill itself on Linux in virtual time.

mod linux;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use hol_packetdrill::{ErrorOrigin, PlayError, PlayRules, play_file};
use hol_stack::ProtocolKind;

use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::point_row::json;
use crate::terminal::print;
use linux::{LinuxPlayer, ScriptRuns};

/// Maximum nesting of directories in which scripts are searched.
const MAX_NESTING: usize = 32;
/// Maximum number of unsupported packetdrill constructs that are listed.
const MAX_CONSTRUCTS: usize = 20;

/// The stack of the model's endpoints unless --stack names another one.
const DEFAULT_STACK: &str = "linux-6.12";

/// The value of --world for hol's own endpoints.
const MODEL: &str = "model";

const EXAMPLES: &str = "\
Examples:
  hol packetdrill handshake.pkt
  hol packetdrill ~/packetdrill/gtests --stack rfc
  hol packetdrill linux/tools/testing/selftests/net/packetdrill --world kernel:uml --repetitions 100 -- --tolerance_usecs=1000";

/// Play packetdrill scripts against the model's endpoints, or on Linux in virtual time
///
/// Prints a line for each script: `passed`; `differs`, with the line of the script, the expected and the
/// actual packet; or `not read`, with the line and the unsupported part. The exit code is 0 if all have
/// passed.
///
/// With --world kernel:uml or kernel, packetdrill itself plays the scripts on Linux: each over IPv4, IPv6 and
/// IPv4-mapped IPv6, unless the script sets --ip_version. Build packetdrill from its source first. Timing does not
/// depend on the load of this machine.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct Packetdrill {
    /// Scripts, or directories whose *.pkt files are played
    #[arg(required = true, value_name = "FILE-OR-FOLDER")]
    paths: Vec<PathBuf>,
    /// Stack of the endpoints; `hol list` shows all
    #[arg(long, default_value = DEFAULT_STACK)]
    stack: String,
    /// Name that `#ifdef` treats as defined; may be repeated [default: Linux]
    #[arg(long, value_name = "NAME")]
    define: Vec<String>,
    /// Fail on any packet that the script does not contain. In this mode calls do not block, and Nagle's algorithm is off
    /// unless the script enables it
    #[arg(long)]
    strict: bool,
    /// Print a JSON object for each script, one per line
    #[arg(long)]
    json: bool,
    /// Where to play: model (hol's endpoints), or kernel:uml or kernel (packetdrill itself, on Linux in virtual time)
    #[arg(long, default_value = MODEL)]
    world: String,
    /// The program packetdrill, for Linux [default: packetdrill]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Number of runs of each script over each version of IP, on Linux [default: 1]
    #[arg(long, value_name = "R", value_parser = parse_positive_number, allow_negative_numbers = true)]
    repetitions: Option<usize>,
    /// Number of runs in parallel, on Linux [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Options of packetdrill, on Linux
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// The result of playing a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Passed,
    Departs,
    NotRead,
}

impl Verdict {
    const ALL: [Self; 3] = [Self::Passed, Self::Departs, Self::NotRead];

    fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Departs => "differs",
            Self::NotRead => "not read",
        }
    }

    fn of(result: &Result<(), PlayError>) -> Self {
        match result {
            Ok(()) => Self::Passed,
            Err(mistake) if mistake.origin() == ErrorOrigin::Endpoint => Self::Departs,
            Err(_) => Self::NotRead,
        }
    }
}

/// Number of scripts by verdict, in one directory.
#[derive(Debug, Clone, Copy, Default)]
struct Tally([usize; 3]);

impl Tally {
    fn count(self, verdict: Verdict) -> usize {
        self.0[verdict as usize]
    }

    fn all(self) -> usize {
        self.0.iter().sum()
    }

    fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| self.0[index] + other.0[index]))
    }
}

/// The verdict on a script. If the script did not pass, also the line of the script, and the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    verdict: Verdict,
    line: usize,
    problem: String,
}

impl Outcome {
    fn of_model(result: &Result<(), PlayError>) -> Self {
        let mistake = result.as_ref().err();
        let problem = mistake.map_or("", PlayError::problem).to_owned();
        Self { verdict: Verdict::of(result), line: mistake.map_or(0, PlayError::line), problem }
    }

    fn of_linux(played: &ScriptRuns) -> Self {
        let ScriptRuns { runs, failed, first } = played;
        match first {
            None => Self { verdict: Verdict::Passed, line: 0, problem: String::new() },
            Some((line, problem)) => {
                let problem = format!("{problem}; {failed} of {runs} runs failed");
                Self { verdict: Verdict::Departs, line: *line, problem }
            }
        }
    }
}

impl Packetdrill {
    /// Plays the scripts; returns an error if one does not pass.
    pub fn run(&self) -> Result<(), Failure> {
        let found = self.paths.iter().map(|path| Ok((path.as_path(), scripts(path)?)));
        let found = found.collect::<Result<Vec<_>, Failure>>()?;
        self.check_options()?;
        let outcomes =
            if self.world == MODEL { self.play_in_model(&found)? } else { self.play_on_linux(&found)? };
        let mut tallies: Vec<(&Path, Tally)> = Vec::new();
        let mut constructs: BTreeMap<String, usize> = BTreeMap::new();
        for ((path, _), outcomes) in found.iter().zip(&outcomes) {
            let mut tally = Tally::default();
            for Outcome { verdict, problem, .. } in outcomes {
                tally.0[*verdict as usize] += 1;
                if *verdict == Verdict::NotRead {
                    *constructs.entry(construct_name(problem)).or_default() += 1;
                }
            }
            tallies.push((path, tally));
        }
        let total = tallies.iter().fold(Tally::default(), |total, (_, tally)| total.plus(*tally));
        if !self.json {
            print(&table(&tallies, total));
            print(&constructs_not_read(&constructs));
        }
        match total.all() - total.count(Verdict::Passed) {
            0 => Ok(()),
            others => Err(Failure::Failed(format!("{others} of {} scripts failed", total.all()))),
        }
    }

    /// Returns an error if an option does not apply to the chosen world.
    fn check_options(&self) -> Result<(), Failure> {
        let of_model = [
            ("--stack", self.stack != DEFAULT_STACK),
            ("--define", !self.define.is_empty()),
            ("--strict", self.strict),
        ];
        let of_linux = [
            ("--program", self.program.is_some()),
            ("--repetitions", self.repetitions.is_some()),
            ("--jobs", self.jobs.is_some()),
            ("options after --", !self.options.is_empty()),
        ];
        let (refused, remedy) = match self.world.as_str() {
            MODEL => (&of_linux[..], "only packetdrill on Linux has this option; add --world kernel:uml"),
            _ => (
                &of_model[..],
                "only the model world has this option; give packetdrill's own options after --",
            ),
        };
        let given = refused.iter().find(|(_, is_given)| *is_given);
        given.map_or(Ok(()), |(option, _)| Err(Failure::Usage(format!("{option}: {remedy}"))))
    }

    /// Plays the scripts below each path against the model's endpoints, and prints each result at once.
    fn play_in_model(&self, paths: &[(&Path, Vec<PathBuf>)]) -> Result<Vec<Vec<Outcome>>, Failure> {
        let rules = self.rules()?;
        let play = |script: &PathBuf| {
            let outcome = Outcome::of_model(&play(script, &rules));
            self.print_result(script, &outcome);
            outcome
        };
        Ok(paths.iter().map(|(_, scripts)| scripts.iter().map(play).collect()).collect())
    }

    /// Plays the scripts below each path with packetdrill on Linux, then prints the results.
    fn play_on_linux(&self, paths: &[(&Path, Vec<PathBuf>)]) -> Result<Vec<Vec<Outcome>>, Failure> {
        let player = LinuxPlayer {
            world: &self.world,
            program: self.program.as_deref().unwrap_or(Path::new("packetdrill")),
            repetitions: self.repetitions.unwrap_or(1),
            jobs: self.jobs,
            options: &self.options,
            is_quiet: self.json,
        };
        let played = player.play(paths)?;
        let outcomes: Vec<Vec<_>> =
            played.iter().map(|scripts| scripts.iter().map(Outcome::of_linux).collect()).collect();
        for ((_, scripts), outcomes) in paths.iter().zip(&outcomes) {
            scripts.iter().zip(outcomes).for_each(|(script, outcome)| self.print_result(script, outcome));
        }
        Ok(outcomes)
    }

    fn rules(&self) -> Result<PlayRules, Failure> {
        let names: Vec<&str> = ProtocolKind::Tcp.stacks().map(|stack| stack.name).collect();
        if !names.contains(&self.stack.as_str()) {
            let problem = format!("unknown stack {:?}; known: {}", self.stack, names.join(", "));
            return Err(Failure::Usage(problem));
        }
        let mut rules = PlayRules::packetdrill(&self.stack);
        if !self.define.is_empty() {
            rules.defines.clone_from(&self.define);
        }
        if self.strict {
            rules.strict = true;
            rules.tolerance = PlayRules::strict().tolerance;
        }
        Ok(rules)
    }

    fn print_result(&self, script: &Path, outcome: &Outcome) {
        let Outcome { verdict, line, problem } = outcome;
        let (path, verdict) = (script.display(), verdict.name());
        if self.json {
            let script = path.to_string();
            print(&json(
                &serde_json::json!({ "script": script, "verdict": verdict, "line": line, "problem": problem }),
            ));
            return;
        }
        let problem: Vec<&str> = problem.lines().map(str::trim).collect();
        match (line, problem.is_empty()) {
            (_, true) => print(&format!("{verdict:8}  {path}\n")),
            (0, false) => print(&format!("{verdict:8}  {path}: {}\n", problem.join(" "))),
            (line, false) => print(&format!("{verdict:8}  {path}:{line}: {}\n", problem.join(" "))),
        }
    }
}

/// Plays a script. A panic of the endpoint fails this script only.
fn play(script: &Path, rules: &PlayRules) -> Result<(), PlayError> {
    std::panic::catch_unwind(|| play_file(script, rules)).unwrap_or_else(|_| Err(PlayError::endpoint_panic()))
}

/// Returns the scripts in a directory and its subdirectories, in order; for the path of a file, only this file.
fn scripts(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return match path.exists() {
            true => Ok(vec![path.to_owned()]),
            false => Err(Failure::Usage(format!("{}: file not found", path.display()))),
        };
    }
    let mut found = Vec::new();
    collect(path, 0, &mut found)?;
    found.sort();
    if found.is_empty() {
        return Err(Failure::Usage(format!("{}: no scripts found; their names end in .pkt", path.display())));
    }
    Ok(found)
}

fn collect(folder: &Path, nested: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |problem: &dyn std::fmt::Display| Failure::Usage(format!("{}: {problem}", folder.display()));
    if nested > MAX_NESTING {
        return Err(failed(&format!("directories are nested more than {MAX_NESTING} deep")));
    }
    for entry in std::fs::read_dir(folder).map_err(|error| failed(&error))? {
        let entry = entry.map_err(|error| failed(&error))?.path();
        if entry.is_dir() && !entry.is_symlink() {
            collect(&entry, nested + 1, found)?;
        } else if entry.extension().is_some_and(|extension| extension == "pkt") {
            found.push(entry);
        }
    }
    Ok(())
}

/// Returns the name of the unsupported construct in a message; leaves out the remedy.
fn construct_name(problem: &str) -> String {
    let begin = problem.split(';').next().unwrap_or_default().lines().next().unwrap_or_default();
    begin.chars().take(100).collect()
}

/// Returns a table with a row for each path, and a row for their sum.
fn table(tallies: &[(&Path, Tally)], total: Tally) -> String {
    let mut rows: Vec<(String, Tally)> =
        tallies.iter().map(|(path, tally)| (path.display().to_string(), *tally)).collect();
    if rows.len() > 1 {
        rows.push(("all".to_owned(), total));
    }
    let width = rows.iter().map(|(path, _)| path.chars().count()).max().unwrap_or(0);
    let mut text = format!("\n{:width$}  scripts  passed  differs  not read\n", "");
    for (path, tally) in rows {
        let [passed, departs, not_read] = Verdict::ALL.map(|verdict| tally.count(verdict));
        text += &format!("{path:width$}  {:7}  {passed:6}  {departs:7}  {not_read:8}\n", tally.all());
    }
    text
}

/// Lists the packetdrill constructs that are not supported, the most frequent first.
fn constructs_not_read(constructs: &BTreeMap<String, usize>) -> String {
    let mut rows: Vec<(&String, usize)> =
        constructs.iter().map(|(construct, count)| (construct, *count)).collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rest: usize = rows.iter().skip(MAX_CONSTRUCTS).map(|(_, count)| count).sum();
    let mut text = String::new();
    if !rows.is_empty() {
        text += "\nnot read because of\n";
    }
    for (construct, count) in rows.into_iter().take(MAX_CONSTRUCTS) {
        text += &format!("{count:7}  {construct}\n");
    }
    if rest > 0 {
        text += &format!("{rest:7}  others\n");
    }
    text
}
