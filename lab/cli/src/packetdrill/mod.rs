//! `hol packetdrill`: plays packetdrill scripts against the model's endpoints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use hol_packetdrill::{ErrorOrigin, PlayError, PlayRules, play_file};
use hol_stack::Kind;

use crate::failure::Failure;
use crate::row::json;
use crate::terminal::say;

/// Maximum nesting of directories.
const MAX_NESTING: usize = 32;
/// Maximum number of unsupported constructs that are listed.
const MAX_CONSTRUCTS: usize = 20;

/// Play packetdrill scripts against the model's endpoints
///
/// Prints a line for each script: `passed`; `departs`, with the line of the script, the expected and the
/// actual packet; or `not read`, with the line and the unsupported part. The exit code is 0 if all have
/// passed.
#[derive(Debug, Args)]
pub struct Packetdrill {
    /// Scripts, or directories whose *.pkt files are played
    #[arg(required = true, value_name = "FILE-OR-FOLDER")]
    paths: Vec<PathBuf>,
    /// Stack of the endpoints; `hol list` shows all
    #[arg(long, default_value = "linux-6.12")]
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
}

/// The result of a script.
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
            Self::Departs => "departs",
            Self::NotRead => "not read",
        }
    }

    fn of(result: &Result<(), PlayError>) -> Self {
        match result {
            Ok(()) => Self::Passed,
            Err(mistake) if mistake.fault() == ErrorOrigin::Endpoint => Self::Departs,
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

impl Packetdrill {
    /// Plays the scripts; returns an error if one does not pass.
    pub fn run(&self) -> Result<(), Failure> {
        let rules = self.rules()?;
        let mut tallies: Vec<(&Path, Tally)> = Vec::new();
        let mut constructs: BTreeMap<String, usize> = BTreeMap::new();
        for path in &self.paths {
            let mut tally = Tally::default();
            for script in scripts(path)? {
                let result = play(&script, &rules);
                let verdict = Verdict::of(&result);
                tally.0[verdict as usize] += 1;
                if let (Verdict::NotRead, Err(mistake)) = (verdict, &result) {
                    *constructs.entry(construct_name(mistake.problem())).or_default() += 1;
                }
                self.print_result(&script, verdict, result.as_ref().err());
            }
            tallies.push((path, tally));
        }
        let total = tallies.iter().fold(Tally::default(), |total, (_, tally)| total.plus(*tally));
        if !self.json {
            say(&table(&tallies, total));
            say(&constructs_not_read(&constructs));
        }
        match total.all() - total.count(Verdict::Passed) {
            0 => Ok(()),
            others => Err(Failure::Failed(format!("{others} of {} scripts failed", total.all()))),
        }
    }

    fn rules(&self) -> Result<PlayRules, Failure> {
        let names: Vec<&str> = Kind::Tcp.stacks().map(|stack| stack.name).collect();
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

    fn print_result(&self, script: &Path, verdict: Verdict, mistake: Option<&PlayError>) {
        let line = mistake.map_or(0, PlayError::line);
        let problem = mistake.map_or("", PlayError::problem);
        if self.json {
            let (script, verdict) = (script.display().to_string(), verdict.name());
            say(&json(
                &serde_json::json!({ "script": script, "verdict": verdict, "line": line, "problem": problem }),
            ));
            return;
        }
        let path = script.display();
        let verdict = verdict.name();
        let problem: Vec<&str> = problem.lines().map(str::trim).collect();
        match (line, problem.is_empty()) {
            (_, true) => say(&format!("{verdict:8}  {path}\n")),
            (0, false) => say(&format!("{verdict:8}  {path}: {}\n", problem.join(" "))),
            (line, false) => say(&format!("{verdict:8}  {path}:{line}: {}\n", problem.join(" "))),
        }
    }
}

/// Plays a script. A panic of the endpoint fails this script only.
fn play(script: &Path, rules: &PlayRules) -> Result<(), PlayError> {
    std::panic::catch_unwind(|| play_file(script, rules)).unwrap_or_else(|_| Err(PlayError::endpoint_panic()))
}

/// Returns the scripts below a path, in order.
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

/// Returns the name of the unsupported construct, without the advice.
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
    let mut text = format!("\n{:width$}  scripts  passed  departs  not read\n", "");
    for (path, tally) in rows {
        let [passed, departs, not_read] = Verdict::ALL.map(|verdict| tally.count(verdict));
        text += &format!("{path:width$}  {:7}  {passed:6}  {departs:7}  {not_read:8}\n", tally.all());
    }
    text
}

/// Lists the unsupported constructs, the most frequent first.
fn constructs_not_read(constructs: &BTreeMap<String, usize>) -> String {
    let mut rows: Vec<(&String, usize)> =
        constructs.iter().map(|(construct, count)| (construct, *count)).collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rest: usize = rows.iter().skip(MAX_CONSTRUCTS).map(|(_, count)| count).sum();
    let mut text = String::new();
    if !rows.is_empty() {
        text += "\nnot read for\n";
    }
    for (construct, count) in rows.into_iter().take(MAX_CONSTRUCTS) {
        text += &format!("{count:7}  {construct}\n");
    }
    if rest > 0 {
        text += &format!("{rest:7}  others\n");
    }
    text
}
