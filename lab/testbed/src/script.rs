//! A parsed script.

use hol_network::{NetworkSpec, Topology};

use crate::programs::Program;
use crate::simulator::Simulator;
use crate::tcl::{Complaint, Interpreter};
use crate::traffic::Flow;

/// A network as an ns script describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Its nodes, links and LANs, in the order of the script.
    pub network: NetworkSpec,
    /// Its traffic, in the order of the script.
    pub flows: Vec<Flow>,
    /// The programs that it starts.
    pub programs: Vec<Program>,
    /// Its ignored commands, in order.
    pub ignored: Vec<Ignored>,
}

/// An ignored command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {command}: {reason}")]
pub struct Ignored {
    /// Its position: `file:line`.
    pub place: String,
    /// As it is written.
    pub command: String,
    /// The reason.
    pub reason: &'static str,
}

/// An error in a script, with its position and the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ScriptError {
    /// `file:line:column` of the word.
    pub place: String,
    /// The problem, and what to do.
    pub problem: String,
}

impl Script {
    /// Parses a script; messages contain `name`.
    pub fn read(name: &str, text: &str) -> Result<Self, ScriptError> {
        let explain = |complaint: Complaint| {
            let (line, column) = place(text, complaint.at);
            ScriptError { place: format!("{name}:{line}:{column}"), problem: complaint.problem }
        };
        let mut interpreter = Interpreter::new(Simulator::new(name, text));
        let ended = interpreter.run(text);
        let Simulator { draft, ignored, traffic, programs, mut unknown, .. } = interpreter.host;
        unknown.extend(ended.err());
        if let Some((first, rest)) = unknown.split_first() {
            let mut error = explain(first.clone());
            rest.iter().for_each(|more| error.problem += &format!("\n{}", explain(more.clone())));
            return Err(error);
        }
        let network = draft.finish().map_err(explain)?;
        let line = |at| format!("{name}:{}", place(text, at).0);
        let flows = traffic.flows(&network.nodes, line).map_err(explain)?;
        let programs = programs.finish(&network.nodes, traffic.end, line).map_err(explain)?;
        match Topology::new(&network) {
            Ok(_) => Ok(Self { network, flows, programs, ignored }),
            Err(problem) => Err(ScriptError { place: name.to_owned(), problem: problem.to_string() }),
        }
    }
}

/// Returns line and column of an offset in the text, both from 1.
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
