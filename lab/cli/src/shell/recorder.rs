//! Writes a session as an experiment file: a program for each line, at the time when the line began.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use hol_kernel::Action;
use hol_lab::{LabError, Point, Source};
use hol_network::EventSpec;
use hol_scenario::{Command, Program};
use toml::{Table, Value};

use super::network::{CompletedStep, START_NEVER, placeholder_program};
use crate::failure::Failure;
use crate::terminal::note;

/// The comment at the top of the recorded experiment file.
const FILE_HEADER: &str = "\
# A session of `hol shell`: a [[program]] for each line, at the time at which it started; `hol run` repeats it.
# Each line is followed by `exit`, so that the shell does not replace itself with the last program of the line; it did
# not in the session. A line that failed is followed by `exit 0`, because a run ends when a program fails.

";

/// Writes the steps of a session to an experiment file.
pub struct ExperimentRecorder {
    path: PathBuf,
    file: File,
    /// The keys of the experiment before the first step.
    table: Table,
    programs: Vec<Program>,
    /// The node of the `sleep` program that replaces a `:wait` at the end of the session.
    node: String,
}

impl ExperimentRecorder {
    /// Creates the file, which must not exist yet, for the network of `point`.
    pub fn new(path: &Path, mut source: Source, point: &Point) -> Result<Self, Failure> {
        for (key, value) in &point.axes {
            source.set("--point", key, value)?;
        }
        let mut table = Table::new();
        table.insert("world".to_owned(), point.world.to_string().into());
        table.insert("transports".to_owned(), vec![point.transport.to_string()].into());
        table.insert("repetitions".to_owned(), 1.into());
        table.insert("seed".to_owned(), Value::try_from(point.seed).map_err(Failure::failed)?);
        let merged = source.merged()?.into_iter();
        table.extend(merged.filter(|(key, _)| ["root", "network"].contains(&key.as_str())));
        let programs =
            point.programs.iter().filter(|program| program.start != START_NEVER).cloned().collect();
        let file = File::create_new(path).map_err(|problem| {
            Failure::Usage(format!("--record {}: {problem}; choose a new file", path.display()))
        })?;
        let node = point.workload.client_node().to_owned();
        Ok(Self { path: path.to_owned(), file, table, programs, node })
    }

    /// Writes the steps to the experiment file.
    pub fn write(mut self, steps: &[CompletedStep]) -> Result<(), Failure> {
        let mut programs = self.programs;
        programs.extend(steps.iter().filter_map(line_program));
        programs.extend(steps.last().and_then(|last| wait_program(last, &self.node)));
        if programs.is_empty() {
            note!("no program was run, so {} is empty", self.path.display());
            return Ok(());
        }
        let mut network = match self.table.remove("network") {
            Some(Value::Table(network)) => network,
            _ => Table::new(),
        };
        let events = steps.iter().filter_map(link_event).map(Value::try_from);
        let events: Vec<Value> = events.collect::<Result<_, _>>().map_err(Failure::failed)?;
        if !events.is_empty() {
            let all = network.entry("events").or_insert_with(|| Value::Array(Vec::new()));
            all.as_array_mut().into_iter().for_each(|all| all.extend_from_slice(&events));
        }
        self.table.insert("network".to_owned(), network.into());
        self.table.insert("program".to_owned(), Value::try_from(&programs).map_err(Failure::failed)?);
        let text = toml::to_string_pretty(&self.table).map_err(Failure::failed)?;
        let written = self.file.write_all(format!("{FILE_HEADER}{text}").as_bytes());
        written.map_err(|problem| LabError::file("write", &self.path, problem))?;
        note!("{0} written; `hol run {0}` repeats the session", self.path.display());
        Ok(())
    }
}

/// Returns a line of the session as a program; `None` for other steps.
fn line_program(completed: &CompletedStep) -> Option<Program> {
    let (Action::Run(program), Some(outcome)) = (&completed.step.action, &completed.reply.outcome) else {
        return None;
    };
    let exit = if outcome.exit_code == 0 { "exit" } else { "exit 0" };
    Some(Program {
        command: Command::Line(format!("{}\n{exit}", program.command.shell_line())),
        start: completed.reply.start_time,
        stop: completed.reply.interrupt_times.first().copied(),
        ..(**program).clone()
    })
}

/// Returns a change of links as an event; `None` for other steps.
fn link_event(completed: &CompletedStep) -> Option<EventSpec> {
    match (&completed.step.action, &completed.reply.refusal) {
        (Action::Change(event), None) => Some(EventSpec { at: completed.reply.start_time, ..event.clone() }),
        _ => None,
    }
}

/// Returns a `:wait` as a program that sleeps, because a run lasts as long as its programs; `None` for other
/// steps.
fn wait_program(completed: &CompletedStep, node: &str) -> Option<Program> {
    let Action::Wait(_) = completed.step.action else { return None };
    let time = completed.reply.end_time - completed.reply.start_time;
    let words = ["sleep".to_owned(), time.as_secs_f64().to_string()];
    let command = Command::Words(words.to_vec());
    Some(Program {
        command,
        start: completed.reply.start_time,
        ..placeholder_program(node, Path::new("/"), "")
    })
}
