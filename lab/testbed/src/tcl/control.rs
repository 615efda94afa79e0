//! Executes commands for control flow: conditions, loops, procedures.

use std::borrow::Cow;
use std::rc::Rc;

use super::budget::ENTRY_OCTETS;
use super::interpreter::{Interpreter, Outcome, ScriptHost, Stop};
use super::list::{list, list_at, list_of};
use super::parse::Command;
use super::variables::Frame;
use super::{Text, Word, WordError};

/// A procedure: its parameters, each with its default value, and its body.
#[derive(Debug)]
pub(super) struct Procedure {
    parameters: Vec<(String, Option<String>)>,
    body: Word,
}

/// The prefix of the message for an error that the script itself raises.
const SCRIPT_ERROR_PREFIX: &str = "the script itself says: ";

/// Whether a loop continues after an iteration of its body.
enum Iteration {
    Next,
    Last,
}

impl<H: ScriptHost> Interpreter<H> {
    /// Executes a command for control flow; `None` for another command.
    pub(super) fn control_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        Some(match (words[0].text.as_str(), &words[1..]) {
            ("if", arguments) => self.if_else(at, arguments),
            ("while", [condition, body]) => self.while_loop(condition, body),
            ("for", [start, condition, next, body]) => self.for_loop(start, condition, next, body),
            ("foreach", [pairs @ .., body]) if pairs.len() > 1 => self.foreach(pairs, body),
            ("proc", [name, parameters, body]) => self.define(name, parameters, body),
            ("return", []) => Err(Stop::Return(String::new())),
            ("return", [value]) => Err(Stop::Return(value.text.clone())),
            ("break", []) => Err(Stop::Break(at)),
            ("continue", []) => Err(Stop::Continue(at)),
            ("eval", [body]) => self.evaluate(body.script()),
            ("eval", [_, ..]) => {
                let text = words[1..].iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
                self.evaluate(Word { text, at, verbatim: None }.script())
            }
            ("catch", [body]) => self.catch(body, None),
            ("catch", [body, name, ..]) => self.catch(body, Some(name)),
            ("error", [problem, ..]) => {
                Err(WordError { at, problem: format!("{SCRIPT_ERROR_PREFIX}{}", problem.text) }.into())
            }
            ("switch", arguments) => self.switch(at, arguments),
            ("uplevel", arguments) => self.uplevel(at, arguments),
            ("source", [_]) => self.source(words),
            ("source", _) => usage_error(at, "source file.tcl"),
            ("eval" | "catch" | "error", _) => {
                usage_error(at, "eval {commands}, catch {commands} name, error text")
            }
            ("while", _) => usage_error(at, "while {condition} {commands}"),
            ("for", _) => usage_error(at, "for {start} {condition} {next} {commands}"),
            ("foreach", _) => usage_error(at, "foreach name list {commands}"),
            ("proc", _) => usage_error(at, "proc name {parameters} {commands}"),
            ("return" | "break" | "continue", _) => usage_error(at, "return value, break, continue"),
            _ => return None,
        })
    }

    /// Executes `uplevel 1 {commands}` or `uplevel #0 {commands}`, which run commands with the variables of a caller.
    fn uplevel(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        let (depth, rest) = self.parse_level(arguments);
        let text = rest.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        let body = match rest {
            [only] => only.clone(),
            [first, ..] => Word { text, at: first.at, verbatim: None },
            [] => return usage_error(at, "uplevel 1 {commands}"),
        };
        let left = self.variables.leave_to(depth);
        let result = self.evaluate(body.script());
        self.variables.restore(left);
        result
    }

    /// Parses a level, where 1 means the caller and `#0` the global scope. Returns the call depth of the level, and the
    /// words after it.
    pub(super) fn parse_level<'w>(&self, words: &'w [Word]) -> (usize, &'w [Word]) {
        let depth = self.variables.depth();
        let level = |word: &Word| match word.text.strip_prefix('#') {
            Some(absolute) => absolute.parse::<usize>().ok().map(|level| level.min(depth)),
            None => word.text.parse::<usize>().ok().map(|up| depth.saturating_sub(up)),
        };
        match words {
            [first, rest @ ..] => match level(first) {
                Some(level) => (level, rest),
                None => (depth.saturating_sub(1), words),
            },
            [] => (depth, words),
        }
    }

    fn if_else(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        const SYNTAX: &str = "if {condition} {commands} elseif {condition} {commands} else {commands}";
        let mut rest = arguments;
        loop {
            let (condition, body, behind) = match rest {
                [condition, then, body, behind @ ..] if then.text == "then" => (condition, body, behind),
                [condition, body, behind @ ..] => (condition, body, behind),
                _ => return usage_error(at, SYNTAX),
            };
            if self.condition(condition.script())? {
                return self.evaluate(body.script());
            }
            rest = match behind {
                [] => return Ok(String::new()),
                [word, last] if word.text == "else" => return self.evaluate(last.script()),
                [word, more @ ..] if word.text == "elseif" => more,
                [last] => return self.evaluate(last.script()),
                [word, ..] => return usage_error(word.at, SYNTAX),
            };
        }
    }

    /// Executes `source`, which runs the commands of another file.
    fn source(&mut self, words: &[Word]) -> Outcome {
        self.budget.charge_turn(words[0].at)?;
        let file = self.host.file(words).map_err(Stop::Limit)?;
        let Some((text, base)) = file else { return Ok(String::new()) };
        match self.evaluate(Text::at(&text, base)) {
            Err(Stop::Return(value)) => Ok(value),
            result => result,
        }
    }

    /// Executes `catch`: runs commands and returns their return code, 0 if they do not end early. The variable `name`
    /// is set to their result. catch(n).
    fn catch(&mut self, body: &Word, name: Option<&Word>) -> Outcome {
        let (code, value) = match self.evaluate(body.script()) {
            Ok(value) => ("0", value),
            Err(Stop::Wrong(WordError { problem, .. })) => {
                ("1", problem.strip_prefix(SCRIPT_ERROR_PREFIX).map_or(problem.clone(), str::to_owned))
            }
            Err(Stop::Return(value)) => ("2", value),
            Err(Stop::Break(_)) => ("3", String::new()),
            Err(Stop::Continue(_)) => ("4", String::new()),
            Err(stop @ (Stop::Limit(_) | Stop::Over)) => return Err(stop),
        };
        if let Some(name) = name {
            self.assign(name.at, &name.text, value)?;
        }
        Ok(code.to_owned())
    }

    fn switch(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        const SYNTAX: &str = "switch text {pattern {commands} default {commands}}";
        let mut is_glob = false;
        let mut rest = arguments;
        while let [option, behind @ ..] = rest
            && option.text.starts_with('-')
        {
            rest = behind;
            match option.text.as_str() {
                "--" => break,
                "-glob" => is_glob = true,
                "-exact" => is_glob = false,
                _ => return usage_error(option.at, SYNTAX),
            }
        }
        let [value, cases @ ..] = rest else { return usage_error(at, SYNTAX) };
        let listed: Vec<Word>;
        let cases = match cases {
            // All patterns and commands in a list get the position of the list.
            [only] => {
                let word = |text: Cow<'_, str>| Word { text: text.into_owned(), at: only.at, verbatim: None };
                listed = list_of(only)?.into_iter().map(word).collect();
                self.budget.charge_octets(only.at, listed.len() * ENTRY_OCTETS)?;
                &listed[..]
            }
            cases => cases,
        };
        let (pairs @ [_, ..], []) = cases.as_chunks() else { return usage_error(at, SYNTAX) };
        let is_last = |index: usize| index + 1 == pairs.len();
        let mut first = None;
        for (index, [pattern, _]) in pairs.iter().enumerate() {
            let is_default = is_last(index) && pattern.text == "default";
            let is_match = match is_glob {
                true => self.matches(pattern.at, &pattern.text, &value.text)?,
                false => pattern.text == value.text,
            };
            if is_default || is_match {
                first = Some(index);
                break;
            }
        }
        let Some(first) = first else { return Ok(String::new()) };
        // A body `-` stands for the body of the next pattern.
        match pairs[first..].iter().find(|[_, body]| body.text != "-") {
            Some([_, body]) => self.evaluate(body.script()),
            None => usage_error(at, SYNTAX),
        }
    }

    fn while_loop(&mut self, condition: &Word, body: &Word) -> Outcome {
        self.with_parsed(body.script(), |interpreter, commands| interpreter.repeat(condition, commands, None))
    }

    fn for_loop(&mut self, start: &Word, condition: &Word, next: &Word, body: &Word) -> Outcome {
        self.evaluate(start.script())?;
        self.with_parsed(body.script(), |interpreter, commands| {
            interpreter.repeat(condition, commands, Some(next))
        })
    }

    /// Executes `commands`, and then `next`, while a condition is true.
    fn repeat(&mut self, condition: &Word, commands: &[Command], next: Option<&Word>) -> Outcome {
        while self.condition(condition.script())? {
            self.budget.charge_turn(condition.at)?;
            if let Iteration::Last = iteration(self.execute_commands(commands))? {
                break;
            }
            if let Some(next) = next {
                self.evaluate(next.script())?;
            }
        }
        Ok(String::new())
    }

    /// Executes `foreach names list … commands`. With several lists, the longest list determines the number of
    /// iterations.
    fn foreach(&mut self, pairs: &[Word], body: &Word) -> Outcome {
        const SYNTAX: &str = "foreach name list {commands}";
        let (pairs, []) = pairs.as_chunks() else { return usage_error(body.at, SYNTAX) };
        let mut columns = Vec::new();
        for [names, list] in pairs {
            let (names_at, names) = (names.at, list_of(names)?);
            if names.is_empty() {
                return usage_error(names_at, SYNTAX);
            }
            columns.push((names_at, names, list_of(list)?));
        }
        // The elements are held during the loop.
        let held = columns.iter().map(|(_, _, values)| values.len() * size_of::<Cow<'_, str>>());
        self.budget.charge_octets(body.at, held.sum())?;
        let turns = columns.iter().map(|(_, names, values)| values.len().div_ceil(names.len())).max();
        self.with_parsed(body.script(), |interpreter, commands| {
            for number in 0..turns.unwrap_or_default() {
                interpreter.budget.charge_turn(body.at)?;
                for (at, names, values) in &columns {
                    for (place, name) in names.iter().enumerate() {
                        let value = values.get(number * names.len() + place).cloned().unwrap_or_default();
                        interpreter.assign(*at, name, value.into_owned())?;
                    }
                }
                if let Iteration::Last = iteration(interpreter.execute_commands(commands))? {
                    break;
                }
            }
            Ok(String::new())
        })
    }

    fn define(&mut self, name: &Word, parameters: &Word, body: &Word) -> Outcome {
        let procedure = self.procedure(parameters, body)?;
        self.procedures.insert(name.text.trim_start_matches("::").to_owned(), procedure);
        Ok(String::new())
    }

    /// Returns a procedure with these parameters, each given as a name, or as a name and a default value.
    pub(super) fn procedure(&mut self, parameters: &Word, body: &Word) -> Result<Rc<Procedure>, Stop> {
        let all = list_of(parameters)?;
        self.budget.charge_octets(parameters.at, (1 + all.len()) * ENTRY_OCTETS)?;
        let mut settled = Vec::new();
        for parameter in all {
            match &list_at(&parameter, parameters.at)?[..] {
                [name] => settled.push((name.to_string(), None)),
                [name, default] => settled.push((name.to_string(), Some(default.to_string()))),
                _ => return usage_error(parameters.at, "proc name {first {second default}} {commands}"),
            }
        }
        Ok(Rc::new(Procedure { parameters: settled, body: body.clone() }))
    }

    /// Calls a procedure. If its last parameter is `args`, that parameter gets all remaining arguments as a list. The
    /// variables `implied` are set before the call.
    pub(super) fn call(
        &mut self,
        procedure: &Procedure,
        name: &Word,
        arguments: &[Word],
        implied: &[(&str, &str)],
    ) -> Outcome {
        let (at, called, mut arguments) = (name.at, &name.text, arguments.iter());
        self.budget.charge_turn(at)?;
        self.budget.charge_octets(at, procedure.parameters.len() * ENTRY_OCTETS)?;
        let mut frame = Frame::default();
        for (variable, value) in implied {
            frame.own.insert((*variable).to_owned(), (*value).to_owned().into());
        }
        let last = procedure.parameters.len();
        for (place, (name, default)) in (1..).zip(&procedure.parameters) {
            let value = if name == "args" && place == last {
                list(arguments.by_ref().map(|word| word.text.as_str()))
            } else {
                let given = arguments.next().map(|word| word.text.clone()).or_else(|| default.clone());
                let problem = || format!("\"{called}\" needs a value for its parameter \"{name}\"");
                given.ok_or_else(|| WordError { at, problem: problem() })?
            };
            frame.own.insert(name.clone(), value.into());
        }
        if let Some(word) = arguments.next() {
            let problem = format!("\"{called}\" has {last} parameters; remove this value");
            return Err(WordError { at: word.at, problem }.into());
        }
        self.variables.enter(frame);
        let result = self.evaluate(procedure.body.script());
        self.variables.leave();
        match result {
            Err(Stop::Return(value)) => Ok(value),
            Err(Stop::Break(at) | Stop::Continue(at)) => Err(outside_of_loop(at).into()),
            result => result,
        }
    }
}

/// Returns the error for a `break` or `continue` outside of a loop.
pub(super) fn outside_of_loop(at: usize) -> WordError {
    WordError { at, problem: "this is outside of any loop; remove it".to_owned() }
}

/// Returns the error for a command with wrong arguments.
///
/// The arguments may be valid in Tcl and only unsupported by hol, so `catch` does not catch this error.
pub(super) fn usage_error<T>(at: usize, form: &str) -> Result<T, Stop> {
    Err(Stop::Limit(WordError { at, problem: format!("the syntax is {form}") }))
}

fn iteration(outcome: Outcome) -> Result<Iteration, Stop> {
    match outcome {
        Ok(_) | Err(Stop::Continue(_)) => Ok(Iteration::Next),
        Err(Stop::Break(_)) => Ok(Iteration::Last),
        Err(other) => Err(other),
    }
}
