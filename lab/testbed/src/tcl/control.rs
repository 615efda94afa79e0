//! Executes commands for control flow: conditions, loops, procedures.

use super::interpreter::{Host, Interpreter, Outcome, Stop};
use super::parse::script;
use super::strings::matches;
use super::variables::Frame;
use super::{Text, Word, WordError, elements};

/// A procedure's parameters, each with its default, and its body.
#[derive(Debug, Clone)]
pub(super) struct Procedure {
    parameters: Vec<(String, Option<String>)>,
    body: Word,
}

impl Procedure {
    /// Returns a procedure with these parameters, each a name, or a name and a default.
    pub(super) fn new(parameters: &Word, body: &Word) -> Result<Self, WordError> {
        let mut settled = Vec::new();
        for parameter in list_of(parameters)? {
            let parts = elements(&parameter).map_err(|problem| WordError { at: parameters.at, problem })?;
            match &parts[..] {
                [name] => settled.push((name.clone(), None)),
                [name, default] => settled.push((name.clone(), Some(default.clone()))),
                _ => {
                    let problem = "the syntax is proc name {first {second default}} {commands}".to_owned();
                    return Err(WordError { at: parameters.at, problem });
                }
            }
        }
        Ok(Self { parameters: settled, body: body.clone() })
    }
}

/// What a turn of a loop's body says about the next.
enum Turn {
    Next,
    Last,
}

impl<H: Host> Interpreter<H> {
    /// Executes a command; `None` if it is not one of these.
    pub(super) fn control(&mut self, words: &[Word]) -> Option<Outcome> {
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
                Err(WordError { at, problem: format!("the script itself says: {}", problem.text) }.into())
            }
            ("switch", arguments) => self.switch(at, arguments),
            ("uplevel", arguments) => self.uplevel(at, arguments),
            ("source", [_]) => self.source(words),
            ("source", _) => usage(at, "source file.tcl"),
            ("eval" | "catch" | "error", _) => {
                usage(at, "eval {commands}, catch {commands} name, error text")
            }
            ("while", _) => usage(at, "while {condition} {commands}"),
            ("for", _) => usage(at, "for {start} {condition} {next} {commands}"),
            ("foreach", _) => usage(at, "foreach name list {commands}"),
            ("proc", _) => usage(at, "proc name {parameters} {commands}"),
            ("return" | "break" | "continue", _) => usage(at, "return value, break, continue"),
            _ => return None,
        })
    }

    /// Runs commands with the variables of a caller: `uplevel 1 {commands}`, `uplevel #0 {commands}`.
    fn uplevel(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        let (depth, rest) = self.level(arguments);
        let text = rest.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        let body = match rest {
            [only] => only.clone(),
            [first, ..] => Word { text, at: first.at, verbatim: None },
            [] => return usage(at, "uplevel 1 {commands}"),
        };
        let left = self.variables.leave_to(depth);
        let result = self.evaluate(body.script());
        self.variables.restore(left);
        result
    }

    /// Returns the depth that a level means here, 1 for the caller, `#0` for none, and the words behind it.
    pub(super) fn level<'w>(&self, words: &'w [Word]) -> (usize, &'w [Word]) {
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
        const FORM: &str = "if {condition} {commands} elseif {condition} {commands} else {commands}";
        let mut rest = arguments;
        loop {
            let (condition, body, behind) = match rest {
                [condition, then, body, behind @ ..] if then.text == "then" => (condition, body, behind),
                [condition, body, behind @ ..] => (condition, body, behind),
                _ => return usage(at, FORM),
            };
            if self.condition(condition.script())? {
                return self.evaluate(body.script());
            }
            rest = match behind {
                [] => return Ok(String::new()),
                [word, last] if word.text == "else" => return self.evaluate(last.script()),
                [word, more @ ..] if word.text == "elseif" => more,
                [last] => return self.evaluate(last.script()),
                [word, ..] => return usage(word.at, FORM),
            };
        }
    }

    /// Runs the commands of another file.
    fn source(&mut self, words: &[Word]) -> Outcome {
        self.step(words[0].at)?;
        let Some((text, base)) = self.host.file(words)? else { return Ok(String::new()) };
        match self.evaluate(Text::at(&text, base)) {
            Err(Stop::Return(value)) => Ok(value),
            result => result,
        }
    }

    /// Gives 1 for what is wrong, and 0 otherwise; the variable has the result.
    fn catch(&mut self, body: &Word, name: Option<&Word>) -> Outcome {
        let (code, value) = match self.evaluate(body.script()) {
            Ok(value) => ("0", value),
            Err(Stop::Wrong(complaint)) => ("1", complaint.problem),
            Err(other) => return Err(other),
        };
        if let Some(name) = name {
            self.assign(name.at, &name.text, value)?;
        }
        Ok(code.to_owned())
    }

    fn switch(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        const FORM: &str = "switch text {pattern {commands} default {commands}}";
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
                _ => return usage(option.at, FORM),
            }
        }
        let [value, cases @ ..] = rest else { return usage(at, FORM) };
        let listed: Vec<Word>;
        let cases = match cases {
            // Their places are those of the list.
            [only] => {
                let word = |text| Word { text, at: only.at, verbatim: None };
                listed = list_of(only)?.into_iter().map(word).collect();
                &listed[..]
            }
            cases => cases,
        };
        let (pairs, []) = cases.as_chunks() else { return usage(at, FORM) };
        let is_last = |index: usize| index + 1 == pairs.len();
        let holds = |(index, [pattern, _]): &(usize, &[Word; 2])| {
            let is_default = is_last(*index) && pattern.text == "default";
            is_default || pattern.text == value.text || is_glob && matches(&pattern.text, &value.text)
        };
        let Some((first, _)) = pairs.iter().enumerate().find(holds) else { return Ok(String::new()) };
        // A body of - is that of the next pattern.
        match pairs[first..].iter().find(|[_, body]| body.text != "-") {
            Some([_, body]) => self.evaluate(body.script()),
            None => usage(at, FORM),
        }
    }

    fn while_loop(&mut self, condition: &Word, body: &Word) -> Outcome {
        let commands = script(body.script())?;
        while self.condition(condition.script())? {
            self.step(condition.at)?;
            if let Turn::Last = turn(self.commands(&commands))? {
                break;
            }
        }
        Ok(String::new())
    }

    fn for_loop(&mut self, start: &Word, condition: &Word, next: &Word, body: &Word) -> Outcome {
        let commands = script(body.script())?;
        self.evaluate(start.script())?;
        while self.condition(condition.script())? {
            self.step(condition.at)?;
            if let Turn::Last = turn(self.commands(&commands))? {
                break;
            }
            self.evaluate(next.script())?;
        }
        Ok(String::new())
    }

    /// `foreach names list … commands`: with several lists as often as the longest needs.
    fn foreach(&mut self, pairs: &[Word], body: &Word) -> Outcome {
        const FORM: &str = "foreach name list {commands}";
        let commands = script(body.script())?;
        let (pairs, []) = pairs.as_chunks() else { return usage(body.at, FORM) };
        let mut columns = Vec::new();
        for [names, list] in pairs {
            let (names_at, names) = (names.at, list_of(names)?);
            if names.is_empty() {
                return usage(names_at, FORM);
            }
            columns.push((names_at, names, list_of(list)?));
        }
        let turns = columns.iter().map(|(_, names, values)| values.len().div_ceil(names.len())).max();
        for number in 0..turns.unwrap_or_default() {
            self.step(body.at)?;
            for (at, names, values) in &columns {
                for (place, name) in names.iter().enumerate() {
                    let value = values.get(number * names.len() + place).cloned().unwrap_or_default();
                    self.assign(*at, name, value)?;
                }
            }
            if let Turn::Last = turn(self.commands(&commands))? {
                break;
            }
        }
        Ok(String::new())
    }

    fn define(&mut self, name: &Word, parameters: &Word, body: &Word) -> Outcome {
        let procedure = Procedure::new(parameters, body)?;
        self.procedures.insert(name.text.clone(), procedure);
        Ok(String::new())
    }

    /// Calls a procedure; a last parameter `args` gets all remaining arguments, as a list. The call begins
    /// with the variables `implied`.
    pub(super) fn call(
        &mut self,
        procedure: &Procedure,
        name: &Word,
        arguments: &[Word],
        implied: &[(&str, &str)],
    ) -> Outcome {
        let (at, called, mut arguments) = (name.at, &name.text, arguments.iter());
        self.step(at)?;
        let mut frame = Frame::default();
        for (variable, value) in implied {
            frame.own.insert((*variable).to_owned(), (*value).to_owned());
        }
        let last = procedure.parameters.len();
        for (place, (name, default)) in (1..).zip(&procedure.parameters) {
            let value = if name == "args" && place == last {
                super::list::list(arguments.by_ref().map(|word| word.text.as_str()))
            } else {
                let given = arguments.next().map(|word| word.text.clone()).or_else(|| default.clone());
                let problem = || format!("\"{called}\" needs a value for its parameter \"{name}\"");
                given.ok_or_else(|| WordError { at, problem: problem() })?
            };
            frame.own.insert(name.clone(), value);
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
            result => result,
        }
    }
}

/// Parses a word as a list.
pub(crate) fn list_of(word: &Word) -> Result<Vec<String>, WordError> {
    elements(&word.text).map_err(|problem| WordError { at: word.at, problem })
}

/// Creates the error of a command with wrong arguments.
pub(super) fn usage<T>(at: usize, form: &str) -> Result<T, Stop> {
    Err(WordError { at, problem: format!("the syntax is {form}") }.into())
}

fn turn(outcome: Outcome) -> Result<Turn, Stop> {
    match outcome {
        Ok(_) | Err(Stop::Continue(_)) => Ok(Turn::Next),
        Err(Stop::Break(_)) => Ok(Turn::Last),
        Err(other) => Err(other),
    }
}
