//! The network of a shell, and all that was done in it. Going back is doing it again up to there in a fresh guest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hol_base::{Digest, Duration, Seed};
use hol_kernel::{Kernel, KernelError, Order, Reply, Session, Step, Surroundings, names_of_this_machine};
use hol_network::Topology;
use hol_scenario::{Command, Program, Scenario, Witness};

use super::ears::Ears;
use super::voice::Voice;

/// When programs start that only stand for what will be typed.
pub const NEVER: Duration = Duration::from_secs(36_500 * 86_400);

/// A step that was taken.
#[derive(Debug, Clone)]
pub struct Taken {
    /// What was asked, with its interrupts.
    pub step: Step,
    /// What came of it.
    pub reply: Reply,
    /// Stands for what programs printed.
    heard: Digest,
}

/// Why something did not happen; the network stands as it did before.
#[derive(Debug)]
pub enum Problem {
    /// It cannot be done.
    Refused(String),
    /// There is no network any more.
    Over(String),
}

/// A network that stands still.
pub struct Network {
    kernel: Kernel,
    /// With the programs of its experiment only.
    scenario: Scenario,
    seed: Seed,
    /// A program for each node that was used, and for each line that named something new: it has to be there from the start.
    stage: Vec<Program>,
    /// What lines have named.
    named: BTreeSet<String>,
    /// Where lines run at first.
    directory: PathBuf,
    session: Session,
    past: Vec<Taken>,
    voice: Voice,
}

impl Network {
    /// Starts the network with a place on `node`.
    pub fn start(
        kernel: Kernel,
        scenario: Scenario,
        seed: Seed,
        node: &str,
        voice: Voice,
    ) -> Result<Self, KernelError> {
        let directory = std::env::current_dir().unwrap_or(PathBuf::from("/root"));
        let stage = vec![stand_in(node, &directory, "sh")];
        let session = begin(&kernel, &with(&scenario, &stage), seed)?;
        let (named, past) = (BTreeSet::new(), Vec::new());
        Ok(Self { kernel, scenario, seed, stage, named, directory, session, past, voice })
    }

    /// The time, counted from when all services were ready.
    pub fn now(&self) -> Duration {
        self.past.last().map_or(Duration::ZERO, |last| last.reply.now)
    }

    /// All that was done.
    pub fn past(&self) -> &[Taken] {
        &self.past
    }

    /// Runs a line on a node.
    pub fn run(&mut self, node: &str, line: &str) -> Result<Reply, Problem> {
        let Surroundings { directory, variables } = self.surroundings(node);
        let program = Program {
            start: NEVER,
            directory: Some(directory),
            env: variables,
            ..stand_in(node, Path::new("/"), line)
        };
        self.make_room(&program).map_err(|problem| Problem::Refused(problem.to_string()))?;
        self.take(Order::Run(Box::new(program)))
    }

    /// Takes a step.
    pub fn take(&mut self, order: Order) -> Result<Reply, Problem> {
        self.hear(order).map(|(reply, _)| reply)
    }

    /// The packets so far, for [`Network::show`].
    pub fn packets(&mut self) -> Result<Vec<u8>, Problem> {
        match self.hear(Order::Packets)? {
            (Reply { refused: Some(problem), .. }, _) => Err(Problem::Refused(problem)),
            (_, packets) => Ok(packets),
        }
    }

    /// Has the `witness` see these packets.
    pub fn show(&self, packets: &[u8], witness: &mut dyn Witness) -> Result<(), KernelError> {
        self.session.packets(packets, witness)
    }

    /// The names of all interfaces.
    pub fn interfaces(&self) -> Vec<String> {
        self.scenario.interfaces().unwrap_or_default()
    }

    /// Takes a step, and hears the packets that come of it.
    fn hear(&mut self, order: Order) -> Result<(Reply, Vec<u8>), Problem> {
        let (mut ears, mut step) = (Ears::loud(self.voice), Step { order, interrupted: Vec::new() });
        match self.session.take(&step, &mut ears) {
            Ok(reply) => {
                step.interrupted.clone_from(&reply.interrupted);
                self.past.push(Taken { step, reply: reply.clone(), heard: ears.digest() });
                Ok((reply, ears.packets))
            }
            // Nothing has been done.
            Err(problem) if problem.is_usage() => Err(Problem::Refused(problem.to_string())),
            Err(problem) => {
                self.again(self.past.clone()).map_err(|worse| Problem::Over(worse.to_string()))?;
                Err(Problem::Refused(format!("{problem}; the network is as it was before")))
            }
        }
    }

    /// Goes back.
    pub fn back(&mut self, past: Vec<Taken>) -> Result<(), Problem> {
        self.again(past).map_err(|problem| Problem::Refused(problem.to_string()))
    }

    /// Does all of a past again in a fresh guest, which takes the place of the other at the end.
    ///
    /// Where computing takes time, times are not compared: a program finds its files a little sooner or later when there is more
    /// than before, and an interrupt that is known is found so. What that changes in what is printed is told.
    fn again(&mut self, past: Vec<Taken>) -> Result<(), KernelError> {
        let mut session = begin(&self.kernel, &self.all(), self.seed)?;
        let mut done = Vec::new();
        for before in past {
            let mut ears = Ears::quiet();
            let reply = session.take(&before.step, &mut ears)?;
            let heard = ears.digest();
            let came_of = |reply: &Reply| (reply.ended.clone(), reply.refused.clone());
            let is_same = if self.kernel.computing_takes_time() {
                came_of(&reply) == came_of(&before.reply)
            } else {
                reply == before.reply
            };
            if heard != before.heard || !is_same {
                let what = told(&before.step.order);
                self.voice.note(&format!("warning: done again, {what} did not do the same"));
            }
            done.push(Taken { reply, heard, ..before });
        }
        (self.session, self.past) = (session, done);
        Ok(())
    }

    /// What the last line on a node left.
    fn surroundings(&self, node: &str) -> Surroundings {
        let of = |taken: &Taken| match &taken.step.order {
            Order::Run(program) if program.node == node => taken.reply.ended.as_ref()?.left.clone(),
            _ => None,
        };
        let left = self.past.iter().rev().find_map(of);
        left.unwrap_or(Surroundings { directory: self.directory.clone(), ..Surroundings::default() })
    }

    /// Has what a line needs there from the start. Where it is not, all is done again where it is.
    fn make_room(&mut self, program: &Program) -> Result<(), KernelError> {
        let named = names_of_this_machine(program);
        let mut others = self.stage.iter().chain(&self.scenario.programs);
        let is_new_node = others.all(|other| other.node != program.node);
        if !is_new_node && named.is_subset(&self.named) {
            return Ok(());
        }
        self.stage.push(program.clone());
        let made = match self.session.has_all_of(&self.all()) {
            // Others have brought it, and what is done again is the same to the ns without it.
            Ok(true) if !is_new_node => {
                self.stage.pop();
                Ok(())
            }
            Ok(_) => self.again(self.past.clone()),
            Err(problem) => Err(problem),
        };
        match &made {
            Ok(()) => self.named.extend(named),
            Err(_) => drop(self.stage.pop()),
        }
        made
    }

    /// What is to be there from the start.
    fn all(&self) -> Scenario {
        with(&self.scenario, &self.stage)
    }
}

/// The names of the nodes of a scenario.
pub fn nodes(scenario: &Scenario) -> Vec<String> {
    let topology = Topology::new(&scenario.network);
    topology.map_or(Vec::new(), |topology| topology.node_names().to_vec())
}

fn with(scenario: &Scenario, stage: &[Program]) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.programs.extend_from_slice(stage);
    scenario
}

/// A program that never starts: its node has a place, and what it names is there.
pub fn stand_in(node: &str, directory: &Path, line: &str) -> Program {
    Program {
        node: node.to_owned(),
        command: Command::Line(line.to_owned()),
        start: NEVER,
        stop: None,
        ready: None,
        directory: Some(directory.to_owned()),
        env: Default::default(),
        metrics: Default::default(),
        files: Default::default(),
    }
}

fn begin(kernel: &Kernel, scenario: &Scenario, seed: Seed) -> Result<Session, KernelError> {
    Session::begin(kernel, scenario, seed, &mut Ears::quiet())
}

fn told(order: &Order) -> String {
    match order {
        Order::Run(program) => format!("`{}` on {}", program.command.line(), program.node),
        Order::Wait(time) => format!("`:wait {time}`"),
        Order::Change(_) => "`:link`".to_owned(),
        Order::Packets => "`:pcap`".to_owned(),
    }
}
