//! Executes a script, command by command.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::budget::Budget;
use super::control::{Procedure, outside_of_loop};
use super::objects::Objects;
use super::parse::{Command, Part, RawWord, script};
use super::variables::Variables;
use super::{COMMANDS, Text, Word, WordError, suggestion};

/// Maximum nesting of calls; a script with deeper nesting is rejected as endless recursion.
const MAX_NESTING: usize = 60;
/// Maximum nesting of command substitutions in brackets, over all commands that are being executed.
const MAX_BRACKETS: usize = 100;
/// Maximum number of octets of scripts nested in each other, because the parsed commands of the outer scripts stay in
/// memory.
const MAX_NESTED: usize = 4 << 20;
/// The length of a command's result is divided by this number before it is charged, because copying a result takes less
/// time than other work.
const COPY_DISCOUNT: usize = 8;
/// Number of additional commands charged for a command of the host, because it may create an object or search for a
/// name.
const HOST_COMMAND_COST: u64 = 3;
/// Number of octets charged for the search for a similar name.
pub(super) const SUGGESTION_COST: usize = 1 << 16;

/// The end of an error message, which says what scripts may contain.
const SUPPORTED_SCRIPTS: &str = "hol supports ns's nodes, links, LANs, agents of TCP, UDP and SCTP, FTP, CBR, Exponential, Pareto and Telnet";

/// A provider of commands that do not belong to Tcl itself.
pub(crate) trait ScriptHost {
    /// Executes a command; `None` if the host has no such command. The first word is the command's name.
    fn command(&mut self, words: &[Word]) -> Option<Result<String, WordError>>;
    /// Names an object after the first global variable that is set to it.
    fn name_after_variable(&mut self, variable: &str, value: &str);
    /// Records an unknown command. Returns its result if the script may continue, otherwise an error.
    fn report_unknown(&mut self, complaint: WordError) -> Result<String, WordError>;
    /// Returns whether a variable of an object is an attribute of the host; all other variables are the script's own.
    fn has_attribute(&self, object: &str, attribute: &str) -> bool;
    /// Returns the class of an object; `None` if the host has no such object.
    fn class_of(&self, object: &str) -> Option<String>;
    /// Records that a script draws one of Tcl's random numbers without setting a seed.
    fn note_unseeded(&mut self, at: usize);
    /// Records that a script sets a variable of its own in one of the host's objects.
    fn note_script_variable(&mut self, words: &[Word]);
    /// Checks a method that a script defines for the host's class `class` or, if `extends`, for a subclass or an object
    /// of this class.
    fn check_method(&mut self, class: &Word, method: &Word, extends: bool);
    /// Returns the names of the host's commands.
    fn names(&self) -> Vec<&'static str>;
    /// Returns the text of a file that the script reads, and the offset of its first octet among all sources; `None`
    /// for a built-in file.
    fn file(&mut self, words: &[Word]) -> Result<Option<(String, usize)>, WordError>;
    /// Returns whether the script can read the file `name`.
    fn has_file(&self, name: &str) -> bool;
    /// Returns whether the script has ended itself, for example with `exit`.
    fn is_over(&self) -> bool;
}

/// The reason why the next command is not executed.
#[derive(Debug)]
pub(super) enum Stop {
    /// An error of the script, which `catch` catches.
    Wrong(WordError),
    /// A limit of the interpreter, or an error of the host. `catch` does not catch it, because it must not hide what
    /// hol lacks.
    Limit(WordError),
    /// A `break` at this position.
    Break(usize),
    /// A `continue` at this position.
    Continue(usize),
    /// A `return` with this value.
    Return(String),
    /// An `exit`, or another command that ends the script.
    Over,
}

/// The result of a command, or the reason why the script stops.
pub(super) type Outcome = Result<String, Stop>;

impl From<WordError> for Stop {
    fn from(complaint: WordError) -> Self {
        Self::Wrong(complaint)
    }
}

/// The state of a script during execution.
pub(crate) struct Interpreter<H> {
    pub host: H,
    pub(super) variables: Variables,
    pub(super) procedures: BTreeMap<String, Rc<Procedure>>,
    pub(super) objects: Objects,
    /// The state of Tcl's random generator; `None` until the script sets a seed.
    pub(super) seed: Option<u64>,
    pub(super) budget: Budget,
    depth: usize,
    /// The nesting depth of the brackets around the command that is being executed.
    brackets: usize,
    /// Octets of the nested scripts that are being executed.
    nested: usize,
}

impl<H: ScriptHost> Interpreter<H> {
    /// Creates an interpreter. `name` is the name of the script, which gets no arguments, as in tclsh(1).
    pub fn new(host: H, name: &str) -> Self {
        let mut variables = Variables::default();
        for (variable, value) in [("argv0", name), ("argv", ""), ("argc", "0")] {
            variables.set(variable, value.to_owned());
        }
        Self {
            host,
            variables,
            procedures: BTreeMap::new(),
            objects: Objects::default(),
            seed: None,
            budget: Budget::default(),
            depth: 0,
            brackets: 0,
            nested: 0,
        }
    }

    /// Sets a global variable.
    pub fn define_variable(&mut self, name: &str, value: String) {
        self.variables.set(name, value);
    }

    /// Executes a whole script.
    pub fn run(&mut self, text: &str) -> Result<(), WordError> {
        self.run_text(Text::whole(text))
    }

    /// Executes a word as a script, such as the argument of `$ns at`.
    pub fn run_word(&mut self, word: &Word) -> Result<(), WordError> {
        self.run_text(word.script())
    }

    fn run_text(&mut self, text: Text<'_>) -> Result<(), WordError> {
        match self.evaluate(text) {
            Ok(_) | Err(Stop::Return(_) | Stop::Over) => Ok(()),
            Err(Stop::Wrong(complaint) | Stop::Limit(complaint)) => Err(complaint),
            Err(Stop::Break(at) | Stop::Continue(at)) => Err(outside_of_loop(at)),
        }
    }

    /// Executes a text as a script.
    pub(super) fn evaluate(&mut self, text: Text<'_>) -> Outcome {
        self.with_parsed(text, |interpreter, commands| interpreter.execute_commands(commands))
    }

    /// Parses a text as a script, and calls `execute` with its commands.
    pub(super) fn with_parsed(
        &mut self,
        text: Text<'_>,
        execute: impl FnOnce(&mut Self, &[Command]) -> Outcome,
    ) -> Outcome {
        let (at, length) = (text.script_position(0), text.text.len());
        self.budget.charge_octets(at, length)?;
        // The script itself may have any length.
        let length = if self.depth == 0 { 0 } else { length };
        if self.nested + length > MAX_NESTED {
            let problem = format!("commands of more than {MAX_NESTED} octets are nested; use procedures");
            return Err(Stop::Limit(WordError { at, problem }));
        }
        self.nested += length;
        let result = script(text).map_err(Stop::Limit).and_then(|commands| execute(self, &commands));
        self.nested -= length;
        result
    }

    /// Executes commands in order and returns the result of the last one.
    pub(super) fn execute_commands(&mut self, commands: &[Command]) -> Outcome {
        let mut result = String::new();
        for command in commands {
            let at = command[0].at;
            self.budget.charge_commands(at, 1)?;
            let words = command.iter().map(|word| self.substitute(word)).collect::<Result<Vec<_>, _>>()?;
            result = self.one_level_deeper(at, |interpreter| interpreter.command(&words))?;
            self.budget.charge_octets(at, result.len() / COPY_DISCOUNT)?;
            if self.host.is_over() {
                return Err(Stop::Over);
            }
        }
        Ok(result)
    }

    /// Calls `inside` with the nesting depth increased by one.
    pub(super) fn one_level_deeper(
        &mut self,
        at: usize,
        inside: impl FnOnce(&mut Self) -> Outcome,
    ) -> Outcome {
        if self.depth >= MAX_NESTING {
            let problem =
                format!("this is nested more than {MAX_NESTING} deep; does a procedure call itself?");
            return Err(Stop::Limit(WordError { at, problem }));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Executes the commands in brackets. They use less of the stack than a script that is an argument of a command.
    fn bracket(&mut self, at: usize, commands: &[Command]) -> Outcome {
        if self.brackets >= MAX_BRACKETS {
            let problem = format!("brackets are nested more than {MAX_BRACKETS} deep; use variables");
            return Err(Stop::Limit(WordError { at, problem }));
        }
        self.brackets += 1;
        let result = self.execute_commands(commands);
        self.brackets -= 1;
        result
    }

    fn command(&mut self, words: &[Word]) -> Outcome {
        let name = &words[0].text;
        // A script may define a command of Tcl anew.
        if let Some(procedure) = self.procedures.get(name.trim_start_matches("::")).cloned() {
            return self.call(&procedure, &words[0], &words[1..], &[]);
        }
        let done = self.control_command(words).or_else(|| self.basic_command(words));
        if let Some(done) = done.or_else(|| self.object_command(words)) {
            return done;
        }
        if let Some(done) = self.try_host(words) {
            return done;
        }
        self.budget.charge_octets(words[0].at, SUGGESTION_COST)?;
        let own = COMMANDS.into_iter().chain(self.host.names());
        let near = suggestion(name, own.chain(self.procedures.keys().map(String::as_str)));
        let cure =
            near.map_or_else(|| SUPPORTED_SCRIPTS.to_owned(), |near| format!("did you mean \"{near}\"?"));
        let problem = format!("unknown command \"{name}\"; {cure}");
        self.report_unknown(words[0].at, problem)
    }

    /// Reports a command that neither the script nor the host has.
    pub(super) fn report_unknown(&mut self, at: usize, problem: String) -> Outcome {
        self.host.report_unknown(WordError { at, problem }).map_err(Stop::Limit)
    }

    /// Executes a command of the host that reads or sets an attribute of `object`.
    pub(super) fn attribute_command(&mut self, at: usize, object: &str, rest: &[&str]) -> Outcome {
        let word = |text: &str| Word { text: text.to_owned(), at, verbatim: None };
        let words: Vec<Word> = [object].iter().chain(rest).map(|text| word(text)).collect();
        self.host_command(&words)
    }

    /// Executes a command of the host; reports it as unknown if the host has no such command.
    pub(super) fn host_command(&mut self, words: &[Word]) -> Outcome {
        self.try_host(words).unwrap_or_else(|| {
            self.report_unknown(words[0].at, format!("unknown command \"{}\"", words[0].text))
        })
    }

    /// Executes a command of the host; `None` if the host has no such command.
    fn try_host(&mut self, words: &[Word]) -> Option<Outcome> {
        if let Err(stop) = self.budget.charge_commands(words[0].at, HOST_COMMAND_COST) {
            return Some(Err(stop));
        }
        self.host.command(words).map(|done| done.map_err(Stop::Limit))
    }

    fn substitute(&mut self, raw: &RawWord) -> Result<Word, Stop> {
        Ok(Word { text: self.join(raw.at, &raw.parts)?, at: raw.at, verbatim: raw.verbatim })
    }

    /// Returns the text of a word, which consists of `parts`.
    pub(super) fn join(&mut self, at: usize, parts: &[Part]) -> Outcome {
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Text(own) => {
                    self.budget.charge_octets(at, own.len())?;
                    text.push_str(own);
                }
                part => text.push_str(&self.value(at, part)?),
            }
        }
        Ok(text)
    }

    /// Returns the value of a part of a word, which is at position `at`.
    pub(super) fn value(&mut self, at: usize, part: &Part) -> Outcome {
        let value = match part {
            Part::Text(text) => text.clone(),
            Part::Script(commands) => self.bracket(at, commands)?,
            Part::Variable { at, name, index } => {
                let name = match index {
                    Some(index) => format!("{name}({})", self.join(*at, index)?),
                    None => name.clone(),
                };
                self.value_of(*at, &name)?
            }
        };
        self.budget.charge_octets(at, value.len())?;
        Ok(value)
    }
}
