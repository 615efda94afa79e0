//! Executes Tcl's commands on variables.

use super::budget::{ENTRY_OCTETS, check_length};
use super::control::usage_error;
use super::interpreter::{Interpreter, Outcome, SUGGESTION_COST, ScriptHost, Stop};
use super::list::{LIST_COST, list, list_continuation, list_of};
use super::number::{MEASURED_VALUE, Number, too_large};
use super::variables::Scope;
use super::{Word, WordError};

/// The names of all supported commands of Tcl.
pub(crate) const COMMANDS: [&str; 42] = [
    "append", "array", "break", "catch", "concat", "continue", "error", "eval", "expr", "file", "for",
    "foreach", "format", "global", "if", "incr", "info", "join", "lappend", "lassign", "lindex", "linsert",
    "list", "llength", "lrange", "lreplace", "lreverse", "lsearch", "lsort", "proc", "regexp", "regsub",
    "return", "set", "source", "split", "string", "switch", "unset", "uplevel", "upvar", "while",
];

impl<H: ScriptHost> Interpreter<H> {
    /// Executes a basic command, such as `set`; `None` for another command.
    pub(super) fn basic_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        Some(match (words[0].text.as_str(), &words[1..]) {
            ("set" | "append", [name]) => self.read(name),
            ("set", [name, value]) => {
                // A node or link gets the name of the variable that holds it, unless the variable is local to a
                // procedure.
                let (scope, own) = self.variables.resolve(&name.text);
                if !matches!(scope, Scope::Call(_)) {
                    self.host.name_after_variable(&own, &value.text);
                }
                self.assign(name.at, &name.text, value.text.clone())
            }
            ("unset", names) => {
                let names = names.iter().filter(|name| !name.text.starts_with('-'));
                names.for_each(|name| self.variables.unset(&name.text));
                Ok(String::new())
            }
            ("global", names) => self.budget.charge_octets(at, names.len() * ENTRY_OCTETS).map(|()| {
                names.iter().for_each(|name| self.variables.link_global(&name.text));
                String::new()
            }),
            ("upvar", arguments) => self.upvar(at, arguments),
            ("incr", [name]) => self.increment(name, &Word { text: "1".to_owned(), ..name.clone() }),
            ("incr", [name, step]) => self.increment(name, step),
            ("append", [name, more @ ..]) => {
                let more: String = more.iter().map(|word| word.text.as_str()).collect();
                self.append(name, &more, false)
            }
            ("lappend", [name, more @ ..]) => self.append_elements(name, more),
            ("expr", [only]) => self.expression(only.script()),
            ("expr", [first, ..]) => {
                let joined = words[1..].iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
                let whole = Word { text: joined, at: first.at, verbatim: None };
                self.expression(whole.script())
            }
            ("set" | "incr" | "append" | "lappend", _) => {
                usage_error(at, "set name value, incr name, lappend name value")
            }
            ("expr", []) => usage_error(at, "expr {expression}"),
            _ => {
                let done = self.list_command(words).or_else(|| self.array_command(words));
                return done.or_else(|| self.string_command(words)).or_else(|| self.regexp_command(words));
            }
        })
    }

    /// Assigns a value to a variable. If the variable is an attribute of one of the host's objects, the host sets it.
    pub(super) fn assign(&mut self, at: usize, name: &str, value: String) -> Outcome {
        if let (Scope::Object(object), attribute) = self.variables.resolve(name)
            && self.host.has_attribute(&object, &attribute)
        {
            return self.attribute_command(at, &object, &["set", &attribute, &value]);
        }
        check_length(at, value.len())?;
        self.budget.charge_octets(at, ENTRY_OCTETS + name.len() + value.len())?;
        self.variables.set(name, value.clone());
        Ok(value)
    }

    /// Returns the value of a variable. If the variable is an attribute of one of the host's objects, the host returns
    /// the value.
    pub(super) fn value_of(&mut self, at: usize, name: &str) -> Outcome {
        if let (Scope::Object(object), attribute) = self.variables.resolve(name)
            && self.host.has_attribute(&object, &attribute)
        {
            return self.attribute_command(at, &object, &["set", &attribute]);
        }
        if let Some(value) = self.variables.get(name) {
            return Ok(value.to_owned());
        }
        // The environment differs between machines, and no result may depend on it.
        if name.trim_start_matches("::").starts_with("env(") {
            return Ok(MEASURED_VALUE.to_owned());
        }
        self.budget.charge_octets(at, SUGGESTION_COST)?;
        Err(WordError { at, problem: self.variables.unknown(name) }.into())
    }

    /// Appends text to a variable, which need not exist; if `has_elements`, the variable becomes a list.
    fn append(&mut self, name: &Word, more: &str, has_elements: bool) -> Outcome {
        if let (Scope::Object(object), attribute) = self.variables.resolve(&name.text)
            && self.host.has_attribute(&object, &attribute)
        {
            let old = self.read(name)?;
            return self.assign(name.at, &name.text, old + more);
        }
        check_length(name.at, self.variables.get(&name.text).map_or(0, str::len) + more.len())?;
        self.budget.charge_octets(name.at, ENTRY_OCTETS)?;
        Ok(self.variables.append(&name.text, more, has_elements).to_owned())
    }

    /// Adds elements to a list in a variable.
    fn append_elements(&mut self, name: &Word, more: &[Word]) -> Outcome {
        let old = self.variables.get(&name.text).unwrap_or_default();
        // Blanks that a list would not have are dropped.
        let has_odd_blanks = || {
            let blanks = ["  ", "\n", "\t"].iter().any(|blanks| old.contains(blanks));
            blanks || old.starts_with(' ') || old.ends_with(' ')
        };
        // A list that grows is not read again for each element.
        if !self.variables.is_list(&name.text) && has_odd_blanks() {
            let old = Word { text: old.to_owned(), ..name.clone() };
            self.budget.charge_octets(name.at, old.text.len() * LIST_COST)?;
            let old = list(list_of(&old)?.iter().map(AsRef::as_ref));
            self.assign(name.at, &name.text, old)?;
        }
        let has_elements = self.variables.get(&name.text).is_some_and(|old| !old.is_empty());
        let more = list_continuation(has_elements, more.iter().map(|word| word.text.as_str()));
        self.append(name, &more, true)
    }

    fn read(&mut self, name: &Word) -> Outcome {
        self.value_of(name.at, &name.text)
    }

    fn increment(&mut self, name: &Word, step: &Word) -> Outcome {
        let old = if self.variables.exists(&name.text) { self.read(name)? } else { "0".to_owned() };
        if [&old, &step.text].iter().any(|value| *value == MEASURED_VALUE) {
            return self.assign(name.at, &name.text, MEASURED_VALUE.to_owned());
        }
        let (old, step) = (whole_number(&Word { text: old, ..name.clone() })?, whole_number(step)?);
        let sum = old.checked_add(step).ok_or_else(|| too_large(name.at))?;
        self.assign(name.at, &name.text, sum.to_string())
    }

    /// Executes `upvar 1 theirs own`, which makes names refer to variables of a caller.
    fn upvar(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        let is_paired = arguments.len().is_multiple_of(2);
        let (depth, pairs) = match self.parse_level(arguments) {
            (_, _) if is_paired => (self.variables.depth().saturating_sub(1), arguments),
            levelled => levelled,
        };
        let (pairs, []) = pairs.as_chunks() else { return usage_error(at, "upvar 1 name own") };
        self.budget.charge_octets(at, pairs.len() * ENTRY_OCTETS)?;
        for [theirs, own] in pairs {
            let place = self.variables.resolve_at(depth, &theirs.text);
            self.variables.link(&own.text, place);
        }
        Ok(String::new())
    }
}

/// Parses a word as an integer.
pub(super) fn whole_number(word: &Word) -> Result<i64, Stop> {
    match Number::parse(&word.text) {
        Some(Number::Whole(number)) => Ok(number),
        _ => {
            Number::refuse_unsupported(&word.text, word.at)?;
            Err(WordError { at: word.at, problem: format!("{:?} is not a whole number", word.text) }.into())
        }
    }
}
