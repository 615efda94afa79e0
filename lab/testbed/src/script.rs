//! A parsed script.

use hol_network::{NetworkSpec, Topology};

use crate::flow::Flow;
use crate::programs::Program;
use crate::simulator::Simulator;
use crate::tcl::{Interpreter, WordError};

/// The network and the traffic that an ns script describes.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Nodes, links and LANs, in the order of the script.
    pub network: NetworkSpec,
    /// Traffic, in the order of the script.
    pub flows: Vec<Flow>,
    /// Programs that the script starts on nodes.
    pub programs: Vec<Program>,
    /// Ignored commands, in the order of the script.
    pub ignored: Vec<IgnoredCommand>,
}

/// A command that has no effect, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {command}: {reason}")]
pub struct IgnoredCommand {
    /// Position of the command: `file:line`.
    pub place: String,
    /// The command as written.
    pub command: String,
    /// Why the command is ignored.
    pub reason: &'static str,
}

/// An error in a script, with its position and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ScriptError {
    /// Position of the wrong word: `file:line:column`.
    pub place: String,
    /// The problem, and how to solve it.
    pub problem: String,
}

/// A function that returns the text of a file that a script reads with `source`, or an error that says why the file is
/// not available.
pub type ReadFile<'f> = &'f dyn Fn(&str) -> Result<String, String>;

/// A function that returns an error if the network must be refused. It is called before routes are computed, because
/// there is a route from every node to every address.
pub type CheckNetwork<'c> = &'c dyn Fn(&NetworkSpec) -> Result<(), String>;

/// The beginnings of the errors that occur if a script is only a fragment, which other scripts read.
const FRAGMENT_ERRORS: [&str; 2] = ["unknown variable", "the script ends before its run"];

/// The error for a fragment of a script, which does not create a simulator.
const FRAGMENT_PROBLEM: &str = "the script describes no nodes and creates no simulator (set ns [new Simulator]); if it is a part of another script, run the one that reads it with source";

impl Script {
    /// Returns whether this text is an ns script, whatever the name of its file: whether a line other than a comment
    /// creates a simulator.
    pub fn looks_like_script(text: &str) -> bool {
        let mut lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with('#'));
        lines.any(|line| {
            line.split_once("new ").is_some_and(|(_, class)| class.trim_start().starts_with("Simulator"))
        })
    }

    /// Parses a script that reads no other files; `name` is the script's name in error messages.
    pub fn read(name: &str, text: &str) -> Result<Self, ScriptError> {
        Self::read_with(name, text, &|_| Err("this script has no directory".to_owned()), &|_| Ok(()))
    }

    /// Parses a script and the files that it reads with `source`. Returns an error if the network fails
    /// `check`.
    pub fn read_with(
        name: &str,
        text: &str,
        read_file: ReadFile<'_>,
        check: CheckNetwork<'_>,
    ) -> Result<Self, ScriptError> {
        // Tcl converts line ends when it reads a file.
        let text = &text.replace("\r\n", "\n");
        let mut interpreter = Interpreter::new(Simulator::new(name, text, read_file), name);
        let (generator, object) = interpreter.host.add_default_random_generator();
        interpreter.define_variable(generator, object);
        let mut ended = interpreter.run(text);
        // Executes the commands of the run in order of time; each may schedule more commands.
        while let Some(due) = interpreter.host.next_due().filter(|_| ended.is_ok()) {
            ended = interpreter.run_word(&due);
        }
        interpreter.host.report_shared_generators();
        let (stated_cause, likely_cause) = (interpreter.host.refusal(false), interpreter.host.refusal(true));
        let is_fragment = interpreter.host.is_fragment();
        let Simulator { draft, ignored, traffic, programs, mut unknown, sources, is_emulab, .. } =
            interpreter.host;
        let explain = |WordError { at, problem }: WordError| {
            let (name, line, column) = sources.locate(at);
            ScriptError { place: format!("{name}:{line}:{column}"), problem }
        };
        if stated_cause.is_some() {
            return Err(explain(likely_cause.or(stated_cause).expect("a refused script has a cause")));
        }
        unknown.extend(ended.err());
        if is_fragment
            && unknown.iter().all(|own| FRAGMENT_ERRORS.iter().any(|known| own.problem.starts_with(known)))
            && likely_cause.is_none()
        {
            let place = unknown.first().map_or(name.to_owned(), |first| explain(first.clone()).place);
            return Err(ScriptError { place, problem: FRAGMENT_PROBLEM.to_owned() });
        }
        // Further errors do not matter in a script that cannot be run anyway.
        let gravest = |error: ScriptError| likely_cause.clone().map_or(error, explain);
        if let Some((first, rest)) = unknown.split_first() {
            let mut error = explain(first.clone());
            rest.iter().for_each(|more| error.problem += &format!("\n{}", explain(more.clone())));
            return Err(gravest(error));
        }
        let mut network = draft.finish(is_emulab).map_err(explain).map_err(gravest)?;
        let line = |at| sources.line(at);
        let refused = |problem: String| ScriptError { place: name.to_owned(), problem };
        check(&network).map_err(refused)?;
        let mut topology = Topology::new(&network);
        let flows = traffic.flows(&network, topology.as_ref().ok(), is_emulab, line);
        let flows = flows.map_err(explain).map_err(gravest)?;
        let longest = flows.iter().map(Flow::longest_packet).max().unwrap_or_default();
        if longest > network.mtu.0 {
            network.mtu.0 = longest;
            topology = Topology::new(&network);
        }
        let programs = programs.finish(&network.nodes, traffic.end, line).map_err(explain)?;
        match topology {
            Ok(_) => Ok(Self { network, flows, programs, ignored }),
            Err(problem) => Err(refused(problem.to_string())),
        }
    }
}
