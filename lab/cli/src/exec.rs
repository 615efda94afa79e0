//! `hol exec`: runs the user's own programs over each transport.

use std::path::{Path, PathBuf};

use clap::Args;
use hol_lab::{Archive, Experiment, PointResult, WorldName};
use hol_measure::{Distribution, RecordKind};
use hol_report::data::Cell;
use hol_scenario::ProgramResult;
use toml::{Table, Value};

use crate::compare::{check_no_failures, describe_verdicts, run_experiment};
use crate::comparison_flags::{Conditions, source_with_transports};
use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::point_row::{self, Row};
use crate::service::{ServiceArgs, table};
use crate::terminal::print;

const MISSING_PROGRAM: &str = "name transports, then a program after --, as in\n  \
    hol exec tcp sctp mptcp --loss 1% --server nginx --listens 80 -- curl -so /dev/null http://server/\n\
    see `hol exec --help`";

/// Maximum number of output lines shown for each program.
const MAX_OUTPUT_LINES: usize = 12;

const EXAMPLES: &str = "\
Examples:
  hol exec tcp mptcp --loss 1% --server nginx --listens 80 -- curl -so page.html http://server/
  hol exec tcp sctp --server 'iperf3 -s' --listens 5201 -- iperf3 -c server
  hol exec tcp --delay 100ms -- ping -c 3 server";

/// Run unmodified programs of this machine between two hosts of a simulated network, over each transport.
///
/// The command after -- runs on the host `client`, the command of --server runs on the host `server`. Each host can
/// reach the other by its name. Both run on a stock Linux kernel in virtual time: same seed, same result. For
/// transports other than tcp, the kernel replaces the programs' TCP sockets with SCTP or MPTCP sockets; the programs
/// themselves do not change.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct Exec {
    /// Transports to compare: tcp, sctp or mptcp, with options as in tcp:cc=reno; each is compared with the first
    #[arg(value_name = "TRANSPORT")]
    transports: Vec<String>,
    #[command(flatten)]
    service: ServiceArgs,
    /// Read a number from the output of the client's program, as in page[ms]='load took ([0-9.]+)' or
    /// rate=json:$.end.bits_per_second
    #[arg(long = "metric", value_name = "NAME[UNIT]=REGEX")]
    metrics: Vec<String>,
    /// Copy the files that programs write to /out into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure the time of the program, of each connection, or of each HTTP/1 request [default: program]
    #[arg(long, value_parser = ["program", "connection", "transaction"])]
    measure: Option<String>,
    #[command(flatten)]
    conditions: Conditions,
    /// Print a JSON object for each transport, one per line
    #[arg(long)]
    json: bool,
    /// Number of runs in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Program on the client, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Exec {
    /// Runs the programs over all transports, then prints the results.
    pub fn run(&self) -> Result<(), Failure> {
        let archive = self.out.as_deref().map_or_else(Archive::default, Archive::of_files);
        let (results, finished) = run_experiment(&self.experiment()?, &archive, self.jobs, self.json)?;
        if self.json {
            results.iter().for_each(|result| print(&point_row::json(&Row::of(result))));
        } else {
            print(&format_results(&results, &self.conditions.overrides()));
            self.out.iter().for_each(|dir| print(&output_directories(dir, &results)));
        }
        check_no_failures(&finished)
    }

    /// Returns the experiment that these flags describe.
    pub fn experiment(&self) -> Result<Experiment, Failure> {
        if self.transports.is_empty() || self.command.is_empty() {
            return Err(Failure::Usage(MISSING_PROGRAM.to_owned()));
        }
        if let Some(sweep) = self.conditions.sweep_setting() {
            return Err(Failure::Usage(format!(
                "--set {sweep}: `hol exec` uses one set of conditions; write a file with [[program]] and [sweep], and run it with `hol run`"
            )));
        }
        let mut source = source_with_transports(&self.transports)?;
        let metrics =
            self.metrics.iter().map(|text| parse_metric(text)).collect::<Result<Table, Failure>>()?;
        let client = table([("command", self.command.clone().into()), ("metrics", metrics.into())]);
        let programs = self.service.programs(client)?;
        source.set("COMMAND", "program", &Value::Array(programs).to_string())?;
        source.set("world (the default)", "world", &WorldName::of_programs().to_string())?;
        source.set("repetitions (the default)", "repetitions", "10")?;
        self.service.apply(&mut source)?;
        if let Some(measure) = &self.measure {
            source.set(
                "--measure",
                "workload",
                &format!("{{ kind = \"programs\", measure = {measure:?} }}"),
            )?;
        }
        self.conditions.apply(&mut source)?;
        Ok(Experiment::parse("exec", &source)?)
    }
}

/// Parses `page[ms]=took ([0-9.]+)`: a name, an optional unit, and the pattern that finds the number.
fn parse_metric(text: &str) -> Result<(String, Value), Failure> {
    let wrong = || {
        Failure::Usage(format!(
            "--metric {text}: write NAME=REGEX or NAME[UNIT]=REGEX, as in page[ms]='took ([0-9.]+)', or NAME=json:PATH"
        ))
    };
    let (name, find) = text.split_once('=').ok_or_else(wrong)?;
    let (name, unit) = match name.split_once('[') {
        Some((name, rest)) => (name, rest.strip_suffix(']').ok_or_else(wrong)?),
        None => (name, ""),
    };
    let (key, find) = find.strip_prefix("json:").map_or(("regex", find), |path| ("json", path));
    let table = Table::from_iter([(key.to_owned(), find.into()), ("unit".to_owned(), Value::from(unit))]);
    Ok((name.to_owned(), table.into()))
}

/// Names the directories with the files that programs wrote to /out in the first repetition; the directories of other
/// repetitions are next to these.
fn output_directories(dir: &Path, results: &[PointResult]) -> String {
    let place = |result: &PointResult| {
        let place = dir.join(format!("{}-0", result.point.id));
        place.is_dir().then(|| format!("/out of {}: {}\n", result.point.label, place.display()))
    };
    results.iter().filter_map(place).collect()
}

/// Returns the text output: the conditions, the table of results, the comparison, and the output of the programs.
fn format_results(results: &[PointResult], overrides: &str) -> String {
    let Some(first) = results.first() else { return String::new() };
    let mut text = describe_conditions(first, overrides) + "\n\n";
    text += &point_row::points_table("transport", results, |result| result.point.label.clone());
    let cells: Vec<Cell> = results.iter().map(Cell::from).collect();
    text += &format!("\n{}", describe_verdicts(&cells));
    for result in results {
        text += &format!("\n{}:\n{}", result.point.label, describe_point(result));
    }
    let warnings = point_row::warnings(results);
    if warnings.is_empty() { text } else { format!("{text}\n{warnings}") }
}

/// Describes the programs and conditions of the run in one sentence.
fn describe_conditions(result: &PointResult, overrides: &str) -> String {
    let point = &result.point;
    let network = &point.network;
    let commands: Vec<String> = point
        .programs
        .iter()
        .map(|program| format!("{} on {}", program.command.shell_line(), program.node))
        .collect();
    let loss = serde_json::to_value(&network.loss).map_or(String::new(), |loss| point_row::unquoted(&loss));
    let (runs, delay, rate) = (result.runs.len(), network.delay, network.rate);
    format!(
        "{}, in {}; {delay} each way, loss {loss}, {rate}, queue {}{overrides}; {runs} repetitions, seed {}",
        commands.join(", "),
        point.world,
        network.queue,
        point.seed
    )
}

/// Describes the connections, transactions and programs of a point.
fn describe_point(result: &PointResult) -> String {
    let mut text = String::new();
    for kind in [RecordKind::Connection, RecordKind::Transaction] {
        let mut all = Distribution::default();
        let own = result.runs.iter().filter_map(|run| run.other.get(&kind));
        own.for_each(|summary| all.merge(&summary.latency));
        if let Some(mean) = all.mean_ms() {
            let each = all.completed() as f64 / result.runs.len() as f64;
            text += &format!("  {each:.1} {}s a run, {mean:.1} ms each\n", kind.name());
        }
    }
    let Some(world_report) = result.runs.first().and_then(|run| run.world_report.as_ref()) else {
        return text;
    };
    for program in &world_report.programs {
        text += &describe_program(program);
    }
    text
}

/// Describes the processor time of a program. If it is more than a tenth of the program's duration, adds a warning,
/// because the result then depends on the processor, too.
fn describe_processor_time(program: &ProgramResult) -> String {
    let ProgramResult { started, ended, processor, .. } = program;
    let used = processor.as_millis_f64();
    let whole =
        started.zip(*ended).map_or(f64::INFINITY, |(start, end)| end.as_millis_f64() - start.as_millis_f64());
    if used == 0.0 {
        return String::new();
    }
    let text = format!(", {used:.1} ms of processor time");
    // The processor time can exceed the duration of the first process, if other processes continue after it.
    if used <= whole / 10.0 || used > whole {
        return text;
    }
    let part = 100.0 * used / whole;
    format!(
        "{text}, {part:.0} % of its duration, so the speed of the processor affects the result; `hol kernel build` builds a kernel on \
        which computation takes no virtual time"
    )
}

/// Describes the exit status of a program in the first repetition, and the first lines of its output.
fn describe_program(program: &ProgramResult) -> String {
    let ProgramResult { node, command, status, stdout, stderr, .. } = program;
    let mut text = format!("  {command} on {node}: {status}{}\n", describe_processor_time(program));
    for (name, output) in [("stdout", stdout), ("stderr", stderr)] {
        let lines: Vec<&str> = output.lines().collect();
        lines.iter().take(MAX_OUTPUT_LINES).for_each(|line| text += &format!("    {name} | {line}\n"));
        if lines.len() > MAX_OUTPUT_LINES {
            text += &format!("    {name} | … and {} more lines\n", lines.len() - MAX_OUTPUT_LINES);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Duration;

    #[test]
    fn a_large_share_of_the_processor_is_reported_with_the_remedy() {
        let of = |processor| {
            let (started, ended) = (Some(Duration::from_millis(100)), Some(Duration::from_millis(300)));
            describe_processor_time(&ProgramResult {
                started,
                ended,
                processor: Duration::from_millis(processor),
                ..ProgramResult::default()
            })
        };
        assert_eq!((of(0), of(20)), (String::new(), ", 20.0 ms of processor time".to_owned()));
        let large = of(50);
        assert!(large.contains("25 % of its duration") && large.contains("hol kernel build"), "{large}");
    }
}
