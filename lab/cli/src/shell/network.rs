//! The network of a shell, and all steps taken in it. To return to an earlier state, the steps are replayed in a fresh
//! guest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hol_base::{Digest, Duration, Seed};
use hol_kernel::{Action, Kernel, KernelError, Session, ShellState, Step, StepResult, local_file_names};
use hol_network::Topology;
use hol_scenario::{Command, PacketObserver, Program, Scenario};

use super::output::OutputFormat;
use super::step_listener::StepListener;

/// Start time of placeholder programs, which never start.
pub const START_NEVER: Duration = Duration::from_secs(36_500 * 86_400);

/// A step of the session that has been completed, with its result.
#[derive(Debug, Clone)]
pub struct CompletedStep {
    /// The action and, if the user interrupted it, the time of the interrupt.
    pub step: Step,
    /// Result of the step.
    pub reply: StepResult,
    /// Digest of the output of programs during the step.
    output_digest: Digest,
}

/// Why a step was not performed.
#[derive(Debug)]
pub enum StepError {
    /// The step was refused, so that the network is unchanged.
    Refused(String),
    /// The guest was lost and could not be restored.
    NetworkLost(String),
}

/// A network in an interactive guest.
pub struct Network {
    kernel: Kernel,
    /// The scenario with the programs of the experiment, without placeholders.
    scenario: Scenario,
    seed: Seed,
    /// Placeholder programs: one for each node on which a line ran, and one for each line that named a file for the
    /// first time. They make the root image contain these files from the start.
    placeholders: Vec<Program>,
    /// Names of all programs and files in the lines run so far.
    known_names: BTreeSet<String>,
    /// Working directory of each node's shell before its first line.
    directory: PathBuf,
    session: Session,
    steps: Vec<CompletedStep>,
    output: OutputFormat,
}

impl Network {
    /// Starts the network and opens a shell on `node`.
    pub fn start(
        kernel: Kernel,
        scenario: Scenario,
        seed: Seed,
        node: &str,
        output: OutputFormat,
    ) -> Result<Self, KernelError> {
        let directory = std::env::current_dir().unwrap_or(PathBuf::from("/root"));
        let placeholders = vec![placeholder_program(node, &directory, "sh")];
        let session = start_session(&kernel, &with_programs(&scenario, &placeholders), seed)?;
        let (known_names, steps) = (BTreeSet::new(), Vec::new());
        Ok(Self { kernel, scenario, seed, placeholders, known_names, directory, session, steps, output })
    }

    /// Returns the time since all services were ready.
    pub fn now(&self) -> Duration {
        self.steps.last().map_or(Duration::ZERO, |last| last.reply.end_time)
    }

    /// Returns the steps that have been completed, the earliest first.
    pub fn steps(&self) -> &[CompletedStep] {
        &self.steps
    }

    /// Runs a line on a node as the next step.
    pub fn run(&mut self, node: &str, line: &str) -> Result<StepResult, StepError> {
        let ShellState { directory, variables } = self.shell_state(node);
        let program = Program {
            start: START_NEVER,
            directory: Some(directory),
            env: variables,
            ..placeholder_program(node, Path::new("/"), line)
        };
        self.ensure_available(&program).map_err(|problem| StepError::Refused(problem.to_string()))?;
        self.perform(Action::Run(Box::new(program)))
    }

    /// Performs an action as the next step.
    pub fn perform(&mut self, action: Action) -> Result<StepResult, StepError> {
        self.perform_with_packets(action).map(|(reply, _)| reply)
    }

    /// Returns the packets so far, for [`Network::pass_packets`].
    pub fn packets(&mut self) -> Result<Vec<u8>, StepError> {
        match self.perform_with_packets(Action::Packets)? {
            (StepResult { refusal: Some(problem), .. }, _) => Err(StepError::Refused(problem)),
            (_, packets) => Ok(packets),
        }
    }

    /// Passes packets that [`Network::packets`] returned to the `observer`.
    pub fn pass_packets(&self, packets: &[u8], observer: &mut dyn PacketObserver) -> Result<(), KernelError> {
        self.session.pass_packets(packets, observer)
    }

    /// Returns the names of all interfaces.
    pub fn interfaces(&self) -> Vec<String> {
        self.scenario.interfaces().unwrap_or_default()
    }

    /// Performs an action; also returns the captured packets, which are empty unless the action is [`Action::Packets`].
    fn perform_with_packets(&mut self, action: Action) -> Result<(StepResult, Vec<u8>), StepError> {
        let (mut listener, mut step) =
            (StepListener::forwarding(self.output), Step { action, interrupt_times: Vec::new() });
        match self.session.perform(&step, &mut listener) {
            Ok(reply) => {
                step.interrupt_times.clone_from(&reply.interrupt_times);
                self.steps.push(CompletedStep {
                    step,
                    reply: reply.clone(),
                    output_digest: listener.output_digest(),
                });
                Ok((reply, listener.packets))
            }
            // The action has not been performed.
            Err(problem) if problem.is_usage_error() => Err(StepError::Refused(problem.to_string())),
            Err(problem) => {
                self.replay(self.steps.clone()).map_err(|worse| StepError::NetworkLost(worse.to_string()))?;
                Err(StepError::Refused(format!("{problem}; the network has not changed")))
            }
        }
    }

    /// Returns to the state at the end of `steps`.
    pub fn return_to(&mut self, steps: Vec<CompletedStep>) -> Result<(), StepError> {
        self.replay(steps).map_err(|problem| StepError::Refused(problem.to_string()))
    }

    /// Replays all steps in a fresh guest, which then replaces the old one.
    ///
    /// Prints a warning if a result differs. If computing takes time in the guest, times are not compared, for two
    /// reasons: the number of files in the guest changes how fast a program finds its files, and the guest detects a
    /// replayed interrupt differently from a new one.
    fn replay(&mut self, steps: Vec<CompletedStep>) -> Result<(), KernelError> {
        let mut session = start_session(&self.kernel, &self.full_scenario(), self.seed)?;
        let mut done = Vec::new();
        for before in steps {
            let mut listener = StepListener::silent();
            let reply = session.perform(&before.step, &mut listener)?;
            let output_digest = listener.output_digest();
            let outcome_of = |reply: &StepResult| (reply.outcome.clone(), reply.refusal.clone());
            let is_same = if self.kernel.computing_takes_time() {
                outcome_of(&reply) == outcome_of(&before.reply)
            } else {
                reply == before.reply
            };
            if output_digest != before.output_digest || !is_same {
                let what = describe(&before.step.action);
                self.output
                    .write_note(&format!("warning: {what} had a different result when it was repeated"));
            }
            done.push(CompletedStep { reply, output_digest, ..before });
        }
        (self.session, self.steps) = (session, done);
        Ok(())
    }

    /// Returns the state in which a node's shell was after its last line.
    fn shell_state(&self, node: &str) -> ShellState {
        let of = |completed: &CompletedStep| match &completed.step.action {
            Action::Run(program) if program.node == node => {
                completed.reply.outcome.as_ref()?.shell_state.clone()
            }
            _ => None,
        };
        let state = self.steps.iter().rev().find_map(of);
        state.unwrap_or(ShellState { directory: self.directory.clone(), ..ShellState::default() })
    }

    /// Ensures that the guest has the programs and files named in a line; if not, replays all steps in a guest that has
    /// them.
    fn ensure_available(&mut self, program: &Program) -> Result<(), KernelError> {
        let names = local_file_names(program);
        let mut others = self.placeholders.iter().chain(&self.scenario.programs);
        let is_new_node = others.all(|other| other.node != program.node);
        if !is_new_node && names.is_subset(&self.known_names) {
            return Ok(());
        }
        self.placeholders.push(program.clone());
        let available = match self.session.provides_programs_of(&self.full_scenario()) {
            // Placeholders of other lines already provide the files, and without this one a replay is the same to the
            // nanosecond.
            Ok(true) if !is_new_node => {
                self.placeholders.pop();
                Ok(())
            }
            Ok(_) => self.replay(self.steps.clone()),
            Err(problem) => Err(problem),
        };
        match &available {
            Ok(()) => self.known_names.extend(names),
            Err(_) => drop(self.placeholders.pop()),
        }
        available
    }

    /// Returns the scenario with all placeholder programs.
    fn full_scenario(&self) -> Scenario {
        with_programs(&self.scenario, &self.placeholders)
    }
}

/// Returns the names of the nodes of a scenario.
pub fn nodes(scenario: &Scenario) -> Vec<String> {
    let topology = Topology::new(&scenario.network);
    topology.map_or(Vec::new(), |topology| topology.node_names().to_vec())
}

fn with_programs(scenario: &Scenario, placeholders: &[Program]) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.programs.extend_from_slice(placeholders);
    scenario
}

/// Returns a program that never starts: it makes the guest provide a container for its node, and the files that it names.
pub fn placeholder_program(node: &str, directory: &Path, line: &str) -> Program {
    Program {
        node: node.to_owned(),
        command: Command::Line(line.to_owned()),
        start: START_NEVER,
        stop: None,
        ready: None,
        directory: Some(directory.to_owned()),
        env: Default::default(),
        metrics: Default::default(),
        files: Default::default(),
    }
}

fn start_session(kernel: &Kernel, scenario: &Scenario, seed: Seed) -> Result<Session, KernelError> {
    Session::begin(kernel, scenario, seed, &mut StepListener::silent())
}

fn describe(action: &Action) -> String {
    match action {
        Action::Run(program) => format!("`{}` on {}", program.command.shell_line(), program.node),
        Action::Wait(time) => format!("`:wait {time}`"),
        Action::Change(_) => "`:link`".to_owned(),
        Action::Packets => "`:pcap`".to_owned(),
    }
}
