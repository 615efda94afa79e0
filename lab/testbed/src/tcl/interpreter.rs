//! Executes a script, command by command.

use std::collections::BTreeMap;

use hol_base::nearest;

use super::control::Procedure;
use super::objects::Objects;
use super::parse::{Command, Part, RawWord, script};
use super::variables::Variables;
use super::{COMMANDS, Text, Word, WordError, error_at};

/// Maximum loop iterations; a script with more does not end.
const MOST_STEPS: u32 = 100_000;
/// Maximum nesting; deeper is considered endless recursion.
const DEEPEST: usize = 60;

/// A provider of commands that are not Tcl's own.
pub(crate) trait Host {
    /// Runs a command; `None` if it does not exist. The first word is its name.
    fn command(&mut self, words: &[Word]) -> Option<Result<String, WordError>>;
    /// A global variable is `set` to a value.
    fn assigned(&mut self, variable: &str, value: &str);
    /// Handles an unknown command: its result, if the script may continue.
    fn lost(&mut self, complaint: WordError) -> Result<String, WordError>;
    /// Returns whether an object has this attribute itself; all others of its variables are the script's.
    fn owns(&self, object: &str, attribute: &str) -> bool;
    /// Returns the class of an object; `None` if it is none of the host's.
    fn class_of(&self, object: &str) -> Option<String>;
    /// Notes that a script draws a random number of Tcl without a seed.
    fn unseeded(&mut self, at: usize);
    /// Notes that a script sets a variable of a host's object that is the script's own.
    fn sets_own(&mut self, words: &[Word]);
    /// Notes that a script defines a method of a class of the host, or of a class or object that `extends` it.
    fn defines(&mut self, class: &Word, method: &Word, extends: bool);
    /// Returns the names of its commands.
    fn names(&self) -> Vec<&'static str>;
    /// Returns the text of a file that the script reads, and where it begins; `None` for one that is built in.
    fn file(&mut self, words: &[Word]) -> Result<Option<(String, usize)>, WordError>;
    /// Returns whether the script can read this file.
    fn has_file(&self, name: &str) -> bool;
    /// Returns whether the script has ended itself.
    fn is_over(&self) -> bool;
}

/// Why the next command is not executed.
#[derive(Debug)]
pub(super) enum Stop {
    Wrong(WordError),
    /// `break`, at this place.
    Break(usize),
    /// `continue`, at this place.
    Continue(usize),
    /// `return`, with this value.
    Return(String),
    /// `exit`, or what else ends the script.
    Over,
}

/// The result of a command.
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
    pub(super) procedures: BTreeMap<String, Procedure>,
    pub(super) objects: Objects,
    /// The state of Tcl's random numbers, once it is set.
    pub(super) seed: Option<u64>,
    steps: u32,
    depth: usize,
}

impl<H: Host> Interpreter<H> {
    /// Creates an interpreter; `name` is the name of the script, which gets no arguments. tclsh(1).
    pub fn new(host: H, name: &str) -> Self {
        let mut variables = Variables::default();
        for (variable, value) in [("argv0", name), ("argv", ""), ("argc", "0")] {
            variables.set(variable, value.to_owned()).expect("it is short");
        }
        Self {
            host,
            variables,
            procedures: BTreeMap::new(),
            objects: Objects::default(),
            seed: None,
            steps: 0,
            depth: 0,
        }
    }

    /// Sets a global variable.
    pub fn define_variable(&mut self, name: &str, value: String) {
        self.variables.set(name, value).expect("it is short");
    }

    /// Executes a whole script.
    pub fn run(&mut self, text: &str) -> Result<(), WordError> {
        self.run_text(Text::whole(text))
    }

    /// Executes a word of the script, such as the argument of `$ns at`.
    pub fn run_word(&mut self, word: &Word) -> Result<(), WordError> {
        self.run_text(word.script())
    }

    fn run_text(&mut self, text: Text<'_>) -> Result<(), WordError> {
        match self.evaluate(text) {
            Ok(_) | Err(Stop::Return(_) | Stop::Over) => Ok(()),
            Err(Stop::Wrong(complaint)) => Err(complaint),
            Err(Stop::Break(at) | Stop::Continue(at)) => {
                error_at(at, "this is outside of any loop; remove it")
            }
        }
    }

    /// Executes a script in a word.
    pub(super) fn evaluate(&mut self, text: Text<'_>) -> Outcome {
        self.commands(&script(text)?)
    }

    /// Executes commands.
    pub(super) fn commands(&mut self, commands: &[Command]) -> Outcome {
        let mut result = String::new();
        for command in commands {
            let words = command.iter().map(|word| self.substitute(word)).collect::<Result<Vec<_>, _>>()?;
            result = self.deeper(words[0].at, |interpreter| interpreter.command(&words))?;
            if self.host.is_over() {
                return Err(Stop::Over);
            }
        }
        Ok(result)
    }

    /// Counts a loop iteration or a call.
    pub(super) fn step(&mut self, at: usize) -> Result<(), WordError> {
        self.steps += 1;
        if self.steps <= MOST_STEPS {
            return Ok(());
        }
        error_at(
            at,
            format!("this has not ended after {MOST_STEPS} turns; does the loop change what it tests?"),
        )
    }

    /// Calls `inside` one level deeper.
    pub(super) fn deeper<T, E: From<WordError>>(
        &mut self,
        at: usize,
        inside: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.depth >= DEEPEST {
            let problem = format!("this is nested more than {DEEPEST} deep; does a procedure call itself?");
            return Err(WordError { at, problem }.into());
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    fn command(&mut self, words: &[Word]) -> Outcome {
        let name = &words[0].text;
        if let Some(done) = self.control(words).or_else(|| self.plain(words)) {
            return done;
        }
        if let Some(procedure) = self.procedures.get(name).cloned() {
            return self.call(&procedure, &words[0], &words[1..], &[]);
        }
        if let Some(done) = self.object_command(words) {
            return done;
        }
        if let Some(done) = self.host.command(words) {
            return done.map_err(Stop::Wrong);
        }
        let own = COMMANDS.into_iter().chain(self.host.names());
        let near = nearest(name, own.chain(self.procedures.keys().map(String::as_str)));
        let cure = near.map_or_else(
            || "hol supports nodes, links, LANs, agents of TCP, UDP and SCTP, FTP and CBR of ns".to_owned(),
            |near| format!("did you mean \"{near}\"?"),
        );
        let problem = format!("unknown command \"{name}\"; {cure}");
        self.host.lost(WordError { at: words[0].at, problem }).map_err(Stop::Wrong)
    }

    /// Asks an object of the host.
    pub(super) fn ask(&mut self, at: usize, object: &str, rest: &[&str]) -> Outcome {
        let word = |text: &str| Word { text: text.to_owned(), at, verbatim: None };
        let words: Vec<Word> = [object].iter().chain(rest).map(|text| word(text)).collect();
        self.ask_host(&words)
    }

    /// Runs a command of the host, which has to exist.
    pub(super) fn ask_host(&mut self, words: &[Word]) -> Outcome {
        let done = self.host.command(words).map(|done| done.map_err(Stop::Wrong));
        done.unwrap_or_else(|| {
            let problem = format!("unknown command \"{}\"", words[0].text);
            self.host.lost(WordError { at: words[0].at, problem }).map_err(Stop::Wrong)
        })
    }

    fn substitute(&mut self, raw: &RawWord) -> Result<Word, Stop> {
        Ok(Word { text: self.join(&raw.parts)?, at: raw.at, verbatim: raw.verbatim })
    }

    /// Returns the text of a word's parts.
    pub(super) fn join(&mut self, parts: &[Part]) -> Outcome {
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Text(own) => text.push_str(own),
                part => text.push_str(&self.value(part)?),
            }
        }
        Ok(text)
    }

    /// Returns the value of a variable.
    pub(super) fn value(&mut self, part: &Part) -> Outcome {
        match part {
            Part::Text(text) => Ok(text.clone()),
            Part::Script(commands) => self.commands(commands),
            Part::Variable { at, name, index } => {
                let name = match index {
                    Some(index) => format!("{name}({})", self.join(index)?),
                    None => name.clone(),
                };
                self.value_of(*at, &name)
            }
        }
    }
}
