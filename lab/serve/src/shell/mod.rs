//! A terminal on the nodes of an experiment: `hol shell` in its own process, at most one per experiment.
//!
//! Users who may change the experiment can enter commands; users who may see it can read the transcript. The shell
//! has the experiment's network, stops virtual time between commands, and is independent of the experiment's runs. An
//! experiment without traffic has no runs: while it is swapped in, its process is such a shell.

mod shells;
mod transcript;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Once;

use hol_lab::Stopwatch;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use shells::{ShellProcess, ShellSession};

pub use shells::{ShellPurpose, Shells};
pub use transcript::{Entry, Transcript};

use crate::computation::{Computation, NamedText, PointSummary, Task};
use crate::events::EventKind;
use crate::experiment::Experiment;
use crate::jobs::RunningProcess;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::{Server, SharedServer};
use crate::store;
use crate::worker::read_answer;

/// Maximum number of open terminals, each of which needs a Linux kernel in memory.
const MAX_TERMINALS: usize = 8;
/// Maximum number of octets of a line.
const MAX_LINE_LENGTH: usize = 64 << 10;

/// Selects the network of a shell.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellOptions {
    /// Index of the experiment's point, from 0.
    #[serde(default)]
    pub point: usize,
}

/// A line typed by a user.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TypedLine {
    /// A command as in `hol shell`; `:help` lists the commands of the shell itself.
    pub line: String,
}

/// The state of a shell.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Shell {
    /// Whether the process of the shell is running.
    pub is_open: bool,
    /// The transcript, without old entries that were removed.
    pub entries: Vec<Entry>,
}

impl Server {
    /// Opens a shell on the network of an experiment.
    pub fn open_shell(
        self: &SharedServer,
        requester: &Requester,
        id: i64,
        options: ShellOptions,
    ) -> Result<Shell, Refusal> {
        let entry = self.entry_to_change(requester, id)?;
        entry.experiment.check_is_no_study()?;
        self.start_shell(&entry, options.point, ShellPurpose::Terminal, || (), |_| ())?;
        self.shell(requester, id)
    }

    /// Starts the process of a shell. Calls `ready` when its nodes can be used, and `exit` when it has ended.
    pub(crate) fn start_shell(
        self: &SharedServer,
        entry: &store::StoredExperiment,
        point: usize,
        used_for: ShellPurpose,
        ready: impl Fn() + Send + Sync + 'static,
        exit: impl FnOnce(io::Result<ExitStatus>) + Send + 'static,
    ) -> Result<RunningProcess, Refusal> {
        if !self.config.permission.programs {
            let why = "this server does not allow experiments to run programs, and a shell is a program";
            return Err(Refusal::new(
                axum::http::StatusCode::FORBIDDEN,
                why,
                "start the server with --programs",
            ));
        }
        let id = entry.experiment.id;
        let text = self.store.text(id, None)?.ok_or_else(Refusal::not_found)?;
        let whole = self.with_placeholder_traffic(entry)?;
        let _one_after_the_other = self.shells.lock_start();
        self.check_shell(id, used_for)?;
        if whole.is_some() && used_for == ShellPurpose::Terminal {
            let why = "the experiment has no traffic, so its terminal is open while it is swapped in";
            return Err(Refusal::conflict(why, "swap it in"));
        }
        let text = whole.unwrap_or(text.text);
        let command = self.runner_command(id)?;
        let (file, PointSummary { points, title }) =
            command.write_for_shell(&entry.experiment, &text, point)?;
        // Other users who watch do not know which point was chosen.
        let note = (points > 1).then(|| json!({ "note": format!("the network of {title}") }));
        let (server, other, is_ready) = (self.clone(), self.clone(), Once::new());
        let line = move |line: String| {
            let said = parse_output(&line);
            if said.get("prompt").is_some() {
                is_ready.call_once(&ready);
            }
            server.handle_shell_output(id, said);
        };
        let exit = move |status: io::Result<ExitStatus>| {
            other.handle_shell_exit(id, &status);
            exit(status);
        };
        let mut shells = self.shells.lock();
        let (running, stdin) = command.start_shell(&file, point, line, exit)?;
        let process =
            ShellProcess { process: running, stdin: Some(stdin), idle: Stopwatch::start(), used_for };
        let mut transcript = Transcript::default();
        if let Some(note) = note {
            self.hub.publish(id, entry.project, EventKind::Shell, &transcript.add(note));
        }
        shells.insert(id, ShellSession { project: entry.project, transcript, process: Some(process) });
        Ok(running)
    }

    /// Returns the text of an experiment with placeholder traffic; `None` if it has traffic of its own.
    pub(crate) fn with_placeholder_traffic(
        &self,
        entry: &store::StoredExperiment,
    ) -> Result<Option<String>, Refusal> {
        let Experiment { id, name, format, .. } = &entry.experiment;
        let text = self.store.text(*id, None)?.map_or(String::new(), |text| text.text);
        let task = Task::AddPlaceholderTraffic(NamedText { name: name.clone(), text, format: *format });
        let permission = self.permission(entry.project)?;
        read_answer(self.worker.run_now(&Computation { task, permission })?)
    }

    /// Checks that a shell may be started for an experiment.
    fn check_shell(&self, id: i64, used_for: ShellPurpose) -> Result<(), Refusal> {
        let shells = self.shells.lock();
        if shells.get(&id).is_some_and(|own| own.process.is_some()) {
            return Err(Refusal::conflict("the experiment already has a shell", "use that shell, or end it"));
        }
        let terminals = shells.values().filter_map(|own| own.process.as_ref());
        let terminals = terminals.filter(|process| process.used_for == ShellPurpose::Terminal).count();
        if used_for == ShellPurpose::Terminal && terminals >= MAX_TERMINALS {
            return Err(Refusal::busy(
                format!("the server has {MAX_TERMINALS} open terminals, which is the maximum"),
                60,
            ));
        }
        Ok(())
    }

    /// Returns the transcript of an experiment's shell.
    pub fn shell(&self, requester: &Requester, id: i64) -> Result<Shell, Refusal> {
        self.entry(requester, id)?;
        let shells = self.shells.lock();
        let own = shells.get(&id);
        Ok(Shell {
            is_open: own.is_some_and(|own| own.process.is_some()),
            entries: own.map_or(Vec::new(), |own| own.transcript.entries()),
        })
    }

    /// Sends a line to the shell of an experiment.
    pub fn send_line(&self, requester: &Requester, id: i64, line: &str) -> Result<(), Refusal> {
        self.entry_to_change(requester, id)?;
        if line.contains(['\n', '\r', '\0']) || line.len() > MAX_LINE_LENGTH {
            return Err(Refusal::bad_request(
                "the input is not one line of text",
                format!("send one line of at most {MAX_LINE_LENGTH} octets"),
            ));
        }
        let mut shells = self.shells.lock();
        let Some(ShellSession { project, transcript, process: Some(process) }) = shells.get_mut(&id) else {
            return Err(no_shell());
        };
        let Some(stdin) = process.stdin.as_mut().filter(|_| transcript.is_waiting()) else {
            return Err(Refusal::conflict(
                "the last command is still running",
                "wait for its end, or interrupt it",
            ));
        };
        // The shell waits for a line, so the pipe is empty, and writing does not block.
        if stdin.write_all(format!("{line}\n").as_bytes()).is_err() {
            return Err(no_shell());
        }
        process.idle = Stopwatch::start();
        let said = transcript.add(json!({ "line": line }));
        self.hub.publish(id, *project, EventKind::Shell, &said);
        Ok(())
    }

    /// Interrupts the command that runs in the shell of an experiment, like Ctrl-C.
    pub fn interrupt_shell(&self, requester: &Requester, id: i64) -> Result<(), Refusal> {
        self.with_process(requester, id, |process, is_waiting| {
            if !is_waiting {
                process.process.interrupt();
            }
        })
    }

    /// Ends the shell of an experiment. Its commands are recorded, unless a command is still running: then the shell is
    /// killed.
    pub fn end_shell(&self, requester: &Requester, id: i64) -> Result<(), Refusal> {
        self.with_process(requester, id, ShellProcess::end)
    }

    /// Returns the directory with the files of an experiment's shell.
    pub fn shell_directory(&self, requester: &Requester, id: i64) -> Result<PathBuf, Refusal> {
        self.entry(requester, id)?;
        Ok(self.runner_command(id)?.shell_directory())
    }

    fn with_process(
        &self,
        requester: &Requester,
        id: i64,
        action: impl FnOnce(&mut ShellProcess, bool),
    ) -> Result<(), Refusal> {
        self.entry_to_change(requester, id)?;
        let mut shells = self.shells.lock();
        let own = shells.get_mut(&id).ok_or_else(no_shell)?;
        let is_waiting = own.transcript.is_waiting();
        action(own.process.as_mut().ok_or_else(no_shell)?, is_waiting);
        Ok(())
    }

    fn handle_shell_output(&self, id: i64, said: Value) {
        if let Some(own) = self.shells.lock().get_mut(&id) {
            if let Some(process) = &mut own.process {
                process.idle = Stopwatch::start();
            }
            let entry = own.transcript.add(said);
            self.hub.publish(id, own.project, EventKind::Shell, &entry);
        }
    }

    fn handle_shell_exit(&self, id: i64, status: &io::Result<ExitStatus>) {
        // The exit code of a shell is that of its last command, so it is not an error.
        let why = match status {
            Ok(status) if status.code().is_some() => "the terminal has ended".to_owned(),
            Ok(_) => "the terminal was killed".to_owned(),
            Err(error) => format!("the terminal has ended; its exit status is unknown: {error}"),
        };
        self.handle_shell_output(id, json!({ "end": why }));
        if let Some(own) = self.shells.lock().get_mut(&id) {
            own.process = None;
        }
    }
}

/// Parses a line of output; a line that is not a JSON object becomes a note.
fn parse_output(line: &str) -> Value {
    let said: Option<Value> = serde_json::from_str(line).ok().filter(Value::is_object);
    said.unwrap_or_else(|| json!({ "note": line }))
}

fn no_shell() -> Refusal {
    Refusal::conflict("the experiment has no open shell", "open a shell first")
}
