//! Programs that a script starts on its nodes. Start commands of Emulab run when a node is up, and its
//! program agents at a given time.

use std::collections::BTreeMap;

use hol_base::Duration;

use crate::simulator::{ENTRY_OCTETS, MAX_OCTETS, Object, Outcome, Simulator};
use crate::tcl::{Word, WordError, error_at};

/// A program that the script starts on a node, with its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Position of the program in the script: `file:line`.
    pub place: String,
    /// Node on which the program runs.
    pub node: String,
    /// The command, which the shell of the node executes.
    pub command: String,
    /// Working directory of the program; `None` if the script sets none.
    pub directory: Option<String>,
    /// When the program starts; `None`: as soon as its node is up.
    pub start: Option<Duration>,
    /// When the program is terminated; `None`: never.
    pub stop: Option<Duration>,
    /// Archives that are unpacked on the program's node: the directory, and the name of the file.
    pub archives: Vec<(String, String)>,
}

/// The programs of the script so far.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    all: Vec<Draft>,
    archives: Vec<(usize, String, String)>,
}

/// A program that a script starts on a node.
#[derive(Debug)]
struct Draft {
    at: usize,
    node: Option<usize>,
    command: Option<String>,
    directory: Option<String>,
    /// Whether the program belongs to a program agent, which runs only when the script starts it.
    is_agent: bool,
    starts: Vec<Duration>,
    stops: Vec<Duration>,
}

impl Simulator<'_> {
    /// Executes `tb-set-node-startcmd $node "command"`, which sets the command that a node runs when it starts.
    pub(crate) fn start_command(&mut self, at: usize, node: &Word, command: &Word) -> Outcome {
        let node = Some(self.node(node)?);
        let command = Some(command.text.clone());
        let (starts, stops) = (Vec::new(), Vec::new());
        self.programs.all.push(Draft { at, node, command, directory: None, is_agent: false, starts, stops });
        Ok(String::new())
    }

    /// Executes `tb-set-node-tarfiles $node /usr/local tools.tar /srv pages.tar.gz`, which sets the archives to be
    /// unpacked on a node.
    pub(crate) fn set_archives(&mut self, node: &Word, rest: &[Word]) -> Outcome {
        let index = self.node(node)?;
        let (pairs, []) = rest.as_chunks() else {
            return error_at(node.at, "the syntax is tb-set-node-tarfiles $node DIRECTORY FILE …");
        };
        for [directory, file] in pairs {
            if !directory.text.starts_with('/') {
                return error_at(
                    directory.at,
                    "the directory on the node must be absolute, as in /usr/local",
                );
            }
            self.programs.archives.push((index, directory.text.clone(), file.text.clone()));
        }
        Ok(String::new())
    }

    /// Executes `$node program-agent -command "…"`; or `new Program $ns`, which has neither a node nor arguments.
    pub(crate) fn program_agent(&mut self, at: usize, node: Option<usize>, words: &[Word]) -> Outcome {
        let (starts, stops) = (Vec::new(), Vec::new());
        let mut draft = Draft { at, node, command: None, directory: None, is_agent: true, starts, stops };
        let (options, []) = words[words.len().min(2)..].as_chunks() else {
            return error_at(at, "the syntax is $node program-agent -command \"ls\" -dir \"/tmp\"");
        };
        for [option, value] in options {
            match option.text.as_str() {
                "-command" => draft.command = Some(value.text.clone()),
                "-dir" => draft.directory = Some(value.text.clone()),
                _ => drop(self.ignore(words, "only -command and -dir are supported")?),
            }
        }
        self.programs.all.push(draft);
        Ok(self.add(Object::Program(self.programs.all.len() - 1)))
    }

    /// Executes a command of a program agent.
    pub(crate) fn program_command(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        if let ("start" | "run" | "stop" | "kill", []) = (method.text.as_str(), &words[2..]) {
            return Ok(self.schedule_program(index, &method.text));
        }
        let ("set", [name, value]) = (method.text.as_str(), &words[2..]) else {
            return error_at(
                method.at,
                "a program supports only $prog set command \"ls\", set node and set dir",
            );
        };
        let node = if name.text == "node" { Some(self.node(value)?) } else { None };
        let (program, text) = (&mut self.programs.all[index], value.text.clone());
        match name.text.as_str() {
            "node" => program.node = node,
            "command" => program.command = Some(text),
            "dir" => program.directory = Some(text),
            _ => return self.ignore(words, "only node, command and dir of a program are supported"),
        }
        Ok(String::new())
    }

    /// Executes `$ns at 60.0 "$prog start"` or `"$prog stop"`, which start or stop a program at a time of the run.
    fn schedule_program(&mut self, index: usize, verb: &str) -> String {
        let now = self.schedule.now.unwrap_or_default();
        let program = &mut self.programs.all[index];
        match verb {
            "stop" | "kill" => program.stops.push(now),
            _ => program.starts.push(now),
        }
        String::new()
    }
}

impl Programs {
    /// Returns the programs in the order of the script. `names` contains the names of the nodes; all programs stop at
    /// `end`, the end of the script.
    pub fn finish(
        &self,
        names: &[String],
        end: Option<Duration>,
        place: impl Fn(usize) -> String,
    ) -> Result<Vec<Program>, WordError> {
        let mut archives: BTreeMap<usize, (usize, Vec<(String, String)>)> = BTreeMap::new();
        for (node, directory, file) in &self.archives {
            let (octets, own) = archives.entry(*node).or_default();
            *octets += ENTRY_OCTETS + directory.len() + file.len();
            own.push((directory.clone(), file.clone()));
        }
        let (mut all, mut held) = (Vec::new(), 0);
        for draft in &self.all {
            let wrong = |problem: &str| WordError { at: draft.at, problem: problem.to_owned() };
            let node =
                draft.node.ok_or_else(|| wrong("this program has no node; add $prog set node $client"))?;
            let command = draft.command.clone();
            let command =
                command.ok_or_else(|| wrong("this program has no command; add $prog set command \"ls\""))?;
            let starts: Vec<Option<Duration>> = match draft.is_agent {
                true => draft.starts.iter().copied().map(Some).collect(),
                false => vec![None],
            };
            let none = (0, Vec::new());
            let (octets, archives) = archives.get(&node).unwrap_or(&none);
            let octets =
                ENTRY_OCTETS + octets + command.len() + draft.directory.as_ref().map_or(0, String::len);
            for start in starts {
                held += octets;
                if held > MAX_OCTETS {
                    return Err(wrong(
                        "the starts of programs, with their commands and archives, take more than 64 MiB; start fewer",
                    ));
                }
                // The stops are in order of time.
                let is_over = |stop: &Duration| start.is_some_and(|start| *stop <= start);
                let first = draft.stops.get(draft.stops.partition_point(is_over)).copied();
                all.push(Program {
                    place: place(draft.at),
                    node: names[node].clone(),
                    command: command.clone(),
                    directory: draft.directory.clone(),
                    start,
                    stop: first.into_iter().chain(end.filter(|end| !is_over(end))).min(),
                    archives: archives.clone(),
                });
            }
        }
        Ok(all)
    }
}
