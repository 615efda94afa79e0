//! `hol shell`: a shell on a node of a simulated network; virtual time stops while the user types.
//!
//! `line_source` reads lines, `command` parses them, `network` runs them, `step_listener` receives the guest's
//! messages, `output` prints them, `recorder` writes the lines as an experiment.

mod command;
mod line_source;
mod network;
mod output;
mod recorder;
mod step_listener;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hol_kernel::{Action, CommandOutcome, Kernel, StepResult};
use hol_lab::{Experiment, LabError, Point, Source, WorldName};
use hol_scenario::Scenario;
use hol_workloads::{Programs, WorkloadSpec};
use toml::Value;

use crate::comparison_flags::{Conditions, source_with_transports};
use crate::failure::Failure;
use crate::progress_args::Parent;
use crate::service::{ServiceArgs, table};
use crate::trace;
use command::{Command, HELP};
use line_source::{InputEvent, LineSource};
use network::{CompletedStep, Network, StepError};
use output::{OutputFormat, Prompt};
use recorder::ExperimentRecorder;
use step_listener::handle_interrupts;

/// Exit code of a program that exceeded the file size limit: 128 + SIGXFSZ. signal(7)
const FILE_SIZE_EXCEEDED: i32 = 128 + 25;

/// Open a shell on a node; virtual time stops while you type.
///
/// Each line runs in the shell of a node, with the programs of this machine, on a Linux kernel in virtual time: same lines, same packets,
/// however long you take. `:help` lists further commands, which change links, write captures and return to snapshots.
#[derive(Debug, Args)]
pub struct Shell {
    /// Transport (tcp, sctp or mptcp, with options as in tcp:cc=reno), or an experiment file with network and programs
    /// [default: tcp]
    #[arg(value_name = "TRANSPORT|FILE")]
    what: Option<String>,
    /// Node on which the shell starts [default: the client]
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Number of the point in the experiment, as `hol run --plan` shows it
    #[arg(long, value_name = "N", default_value_t = 0)]
    point: usize,
    #[command(flatten)]
    service: ServiceArgs,
    #[command(flatten)]
    conditions: Conditions,
    /// Record your commands as an experiment file for hol run
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Let a program control the shell: print one JSON object per line, continue after errors, and write captures only into the current
    /// directory
    #[arg(long, value_name = "FORMAT")]
    dialogue: Option<Format>,
    #[command(flatten)]
    parent: Parent,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Json,
}

impl Shell {
    /// Executes lines until there are no more; returns the exit code of the last one.
    pub fn run(&self) -> Result<ExitCode, Failure> {
        self.parent.end_with_parent()?;
        let (source, point) = self.point()?;
        let record =
            self.record.as_deref().map(|path| ExperimentRecorder::new(path, source, &point)).transpose()?;
        let kernel = kernel(&point)?;
        handle_interrupts()?;
        let scenario = programs_only(&point);
        let node = self.node.clone().unwrap_or_else(|| scenario.workload.client_node().to_owned());
        let nodes = network::nodes(&scenario);
        check_node(&nodes, &node).map_err(|problem| Failure::Usage(format!("--node: {problem}")))?;
        let seed = point.seed_of(0);
        let output = self.dialogue.map_or(OutputFormat::Text, |Format::Json| OutputFormat::JsonLines);
        let warning = kernel.warning().map_err(Failure::failed)?;
        warning.iter().for_each(|warning| output.write_note(&format!("warning: {warning}")));
        let network = Network::start(kernel, scenario, seed, &node, output).map_err(Failure::failed)?;
        let (line_source, snapshots) = (LineSource::open(output)?, BTreeMap::new());
        let mut session = ShellSession { line_source, output, network, nodes, node, exit_code: 0, snapshots };
        let ended = session.serve();
        if let Some(record) = record {
            record.write(session.network.steps())?;
        }
        // The system passes only the last eight bits of an exit code to the parent.
        ended.map(|()| ExitCode::from(session.exit_code as u8))
    }

    /// Returns the source of the experiment, and the point whose network the shell runs.
    pub fn point(&self) -> Result<(Source, Point), Failure> {
        if self.conditions.has_repetitions() {
            let problem = "--repetitions: a shell is a single run; omit the option, or use --seed for other random losses";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let what = self.what.as_deref().unwrap_or("tcp");
        let is_file = Path::new(what).extension().is_some_and(|ending| ending == "toml" || ending == "ns");
        let mut source = match is_file {
            true => Source::read(Path::new(what))?,
            false => source_with_transports(&[what.to_owned()])?,
        };
        if self.service.is_given() {
            if is_file {
                let problem = "--server and --file: the experiment defines the programs; add both there";
                return Err(Failure::Usage(problem.to_owned()));
            }
            let programs = self.service.programs(table([
                ("command", "sh".into()),
                ("start", network::START_NEVER.to_string().into()),
            ]))?;
            source.set("--server", "program", &Value::Array(programs).to_string())?;
        }
        self.service.apply(&mut source)?;
        if !is_file {
            source.set("repetitions (the default)", "repetitions", "1")?;
        }
        // The point is chosen before it is moved to another world: setting the world would remove the axis `world`, and
        // points would have other numbers.
        self.conditions.apply_except_world(&mut source)?;
        let experiment = Experiment::parse_for_any_machine(&source.stem(), &source)?;
        let point = trace::point_by_number(experiment, self.point)?;
        let world = self.world(&source, &point)?;
        let point = point.in_named_world(&world).map_err(LabError::from)?;
        Ok((source, point))
    }

    /// Returns the world that the user names, else that of the point, else the default for programs.
    fn world(&self, source: &Source, point: &Point) -> Result<WorldName, Failure> {
        if let Some(name) = self.conditions.world()? {
            let Ok(world) = name.parse();
            return Ok(world);
        }
        let is_named = source.merged()?.contains_key("world") || point.axis_value("world").is_some();
        Ok(if is_named { point.world.clone() } else { WorldName::of_programs() })
    }
}

/// Returns the kernel of a point's world.
fn kernel(point: &Point) -> Result<Kernel, Failure> {
    let world = &point.world;
    if world.family() != "kernel" {
        let best = WorldName::of_programs();
        let problem = format!("programs run only in the kernel world, not in {world}; add --world {best}");
        return Err(Failure::Usage(problem));
    }
    Kernel::find(world.variant()).map_err(Failure::failed)
}

/// Returns the scenario of a point without its flows: only the network and its programs.
fn programs_only(point: &Point) -> Scenario {
    let scenario = point.scenario(0);
    let ends =
        [scenario.workload.client_node(), scenario.workload.server_node()].map(|end| Some(end.to_owned()));
    let [from, to] = ends;
    let workload = WorkloadSpec { from, to, ..WorkloadSpec::new(Programs::default()) };
    let (hosts, background, onward) = (BTreeMap::new(), Vec::new(), Vec::new());
    Scenario { workload, messages: 1, hosts, background, onward, ..scenario }
}

/// A session of the shell.
struct ShellSession {
    line_source: LineSource,
    output: OutputFormat,
    network: Network,
    /// Nodes on which commands can run.
    nodes: Vec<String>,
    /// The node on which the next line runs.
    node: String,
    /// Exit code of the last line.
    exit_code: i32,
    /// Snapshots by name: each has the node of the prompt at the time of the snapshot, and all steps until then.
    snapshots: BTreeMap<String, (String, Vec<CompletedStep>)>,
}

impl ShellSession {
    /// Executes lines until there are no more.
    fn serve(&mut self) -> Result<(), Failure> {
        for number in 1.. {
            self.output.show_prompt(self.prompt());
            let prompt = self.prompt().text();
            let command = match self.line_source.next(&prompt)? {
                InputEvent::Line(line) => Command::parse(&line),
                InputEvent::Cancelled => continue,
                InputEvent::End => break,
            };
            let done = match command {
                Ok(Command::Quit) => break,
                Ok(command) => self.execute(command),
                Err(problem) => Err(StepError::Refused(problem)),
            };
            match done {
                Ok(()) => {}
                Err(StepError::Refused(problem)) if self.continues_after_errors() => {
                    self.output.write_note(&format!("error: {problem}"));
                }
                Err(StepError::Refused(problem)) => {
                    return Err(Failure::Usage(format!("standard input:{number}: {problem}")));
                }
                Err(StepError::NetworkLost(problem)) => return Err(Failure::Failed(problem)),
            }
        }
        Ok(())
    }

    /// Returns whether the session continues after an error: at a terminal, and with JSON lines.
    fn continues_after_errors(&self) -> bool {
        self.line_source.is_terminal() || self.output == OutputFormat::JsonLines
    }

    fn prompt(&self) -> Prompt<'_> {
        Prompt { node: &self.node, now: self.network.now(), code: self.exit_code, nodes: &self.nodes }
    }

    fn execute(&mut self, command: Command) -> Result<(), StepError> {
        match command {
            Command::Run(node, line) => {
                let node = node.unwrap_or_else(|| self.node.clone());
                self.check_node_exists(&node)?;
                let reply = self.network.run(&node, &line)?;
                self.report_outcome(reply)?;
            }
            Command::Node(node) => {
                self.check_node_exists(&node)?;
                self.node = node;
            }
            Command::Wait(time) => check_performed(self.network.perform(Action::Wait(time))?)?,
            Command::Link(event) => check_performed(self.network.perform(Action::Change(*event))?)?,
            Command::Snapshot(name) => {
                self.snapshots.insert(name, (self.node.clone(), self.network.steps().to_vec()));
            }
            Command::ReturnTo(name) => self.return_to(&name)?,
            Command::Pcap(file) => self.capture(&file)?,
            Command::Time => {
                self.output.write_stdout(format!("{:.9} s\n", self.network.now().as_secs_f64()).as_bytes());
            }
            Command::Help => self.output.write_stdout(HELP.as_bytes()),
            Command::Nothing | Command::Quit => {}
        }
        Ok(())
    }

    /// Stores the exit code of a line. If the line exceeded a limit, also prints an explanation.
    fn report_outcome(&mut self, reply: StepResult) -> Result<(), StepError> {
        if let Some(CommandOutcome { exit_code, exceeded_memory, .. }) = reply.outcome {
            self.exit_code = exit_code;
            if exceeded_memory {
                self.output.write_note(
                    "error: the program exceeded its memory limit of 640 MB and was killed; run it with less data or fewer threads",
                );
            }
            if exit_code == FILE_SIZE_EXCEEDED {
                self.output.write_note(
                    "error: the program wrote more than 256 MB to one file or output; write less, or to /dev/null",
                );
            }
        }
        check_performed(reply)
    }

    fn check_node_exists(&self, node: &str) -> Result<(), StepError> {
        check_node(&self.nodes, node).map_err(StepError::Refused)
    }

    fn return_to(&mut self, name: &str) -> Result<(), StepError> {
        let Some((node, steps)) = self.snapshots.get(name) else {
            let known: Vec<&str> = self.snapshots.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "none exists".to_owned()
            } else {
                format!("use {}", known.join(" or "))
            };
            return Err(StepError::Refused(format!(
                "unknown snapshot {name:?}; {known}; `:snapshot NAME` creates one"
            )));
        };
        self.network.return_to(steps.clone())?;
        self.node.clone_from(node);
        self.exit_code =
            steps.iter().rev().find_map(|step| Some(step.reply.outcome.as_ref()?.exit_code)).unwrap_or(0);
        Ok(())
    }

    fn capture(&mut self, file: &Path) -> Result<(), StepError> {
        // The user of the program that drives the shell may have fewer rights than this process, so only plain file
        // names are allowed.
        if self.output == OutputFormat::JsonLines
            && (file.file_name() != Some(file.as_os_str()) || file == Path::new("-"))
        {
            let problem = format!(
                "{}: only a file name without a directory is allowed, as in `:pcap run.pcapng`",
                file.display()
            );
            return Err(StepError::Refused(problem));
        }
        let packets = self.network.packets()?;
        let (network, names) = (&self.network, self.network.interfaces());
        let written = trace::write_capture(file, names, "hol shell", |observer| {
            network.pass_packets(&packets, observer).map_err(Failure::failed)
        });
        let packets = written.map_err(|problem| StepError::Refused(problem.to_string()))?;
        let what = format!("{packets} packets of hol shell");
        match self.output {
            OutputFormat::Text => trace::report_written(file, &what),
            OutputFormat::JsonLines => self.output.write_note(&format!("{}: {what}", file.display())),
        }
        Ok(())
    }
}

/// Returns an error if the guest refused the action.
fn check_performed(reply: StepResult) -> Result<(), StepError> {
    reply.refusal.map_or(Ok(()), |problem| Err(StepError::Refused(problem)))
}

fn check_node(nodes: &[String], node: &str) -> Result<(), String> {
    if nodes.iter().any(|known| known == node) {
        return Ok(());
    }
    Err(format!("unknown node {node:?}; use one of {}", nodes.join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        shell: Shell,
    }

    /// `--world` replaces the world of the chosen point and does not renumber the points of a sweep over worlds.
    #[test]
    fn a_point_keeps_its_number_in_another_world() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("worlds.toml");
        let text =
            "transports = ['tcp']\n[sweep]\nworld = ['model', 'kernel']\n'network.rtt' = ['10ms', '80ms']\n";
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        for (point, delay) in [("0", "5ms"), ("1", "40ms"), ("2", "5ms"), ("3", "40ms")] {
            let arguments = ["shell", file, "--point", point, "--world", "model"];
            let (_, chosen) = Cli::parse_from(arguments).shell.point().unwrap();
            assert_eq!((chosen.network.delay.to_string().as_str(), chosen.world.family()), (delay, "model"));
        }
    }
}
