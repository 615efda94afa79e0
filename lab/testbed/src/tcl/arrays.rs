//! Executes the commands `array`, `info` and `lassign`.

use std::collections::BTreeSet;

use super::budget::ENTRY_OCTETS;
use super::control::usage_error;
use super::interpreter::{Interpreter, Outcome, ScriptHost, Stop};
use super::list::{list, list_of};
use super::variables::Scope;
use super::{COMMANDS, Word, WordError};

impl<H: ScriptHost> Interpreter<H> {
    /// Executes `array`, `info` or `lassign`; `None` for another command.
    pub(super) fn array_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        let texts: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
        let flag = |holds: bool| Ok(i64::from(holds).to_string());
        Some(match (words[0].text.as_str(), &texts[..]) {
            ("array", ["exists", name]) => self.indices(at, name).and_then(|all| flag(!all.is_empty())),
            ("array", ["size", name]) => self.indices(at, name).map(|all| all.len().to_string()),
            ("array", ["names", name]) => self.names(at, name, "*"),
            ("array", ["names", name, pattern]) => self.names(at, name, pattern),
            ("array", ["get", name]) => self.pairs(at, name),
            ("array", ["unset", name]) => self.indices(at, name).map(|_| {
                self.variables.unset(name);
                String::new()
            }),
            ("array", ["set", name, _]) => self.set_array(name, &words[3]),
            ("array", _) => {
                usage_error(at, "array set name {index value …}, array names name, array size name")
            }
            ("info", ["exists" | "exist", name]) => flag(self.has_variable(name)),
            ("info", [kind @ ("procs" | "commands")]) => self.commands_named(at, "*", *kind == "commands"),
            ("info", [kind @ ("procs" | "commands"), pattern]) => {
                self.commands_named(at, pattern, *kind == "commands")
            }
            ("info", ["script"]) => Ok(self.variables.get("::argv0").unwrap_or_default().to_owned()),
            ("info", _) => {
                usage_error(at, "info exists NAME; hol supports the subcommands exists, procs and script")
            }
            ("lassign", [_, ..]) => self.assign_each(&words[1], &words[2..]),
            ("lassign", _) => usage_error(at, "lassign list name …"),
            _ => return None,
        })
    }

    /// Returns the names of procedures that match a pattern or, if `with_commands`, of all commands that match it.
    fn commands_named(&mut self, at: usize, pattern: &str, with_commands: bool) -> Outcome {
        let mut names: BTreeSet<String> = self.procedures.keys().cloned().collect();
        self.budget.charge_octets(at, names.iter().map(|name| ENTRY_OCTETS + name.len()).sum())?;
        if with_commands {
            names.extend(COMMANDS.into_iter().chain(self.host.names()).map(str::to_owned));
        }
        let (own, prefix) = pattern.strip_prefix("::").map_or((pattern, ""), |own| (own, "::"));
        let mut found = Vec::new();
        for name in names {
            if self.matches(at, own, &name)? {
                found.push(format!("{prefix}{name}"));
            }
        }
        Ok(list(found.iter().map(String::as_str)))
    }

    /// Returns the indices of an array, in the order in which Tcl lists them.
    fn indices(&mut self, at: usize, array: &str) -> Result<Vec<String>, Stop> {
        let indices = self.variables.indices(array);
        let octets = indices.iter().map(|index| ENTRY_OCTETS + index.len());
        self.budget.charge_octets(at, octets.sum())?;
        Ok(indices)
    }

    fn names(&mut self, at: usize, array: &str, pattern: &str) -> Outcome {
        let mut names = Vec::new();
        for index in self.indices(at, array)? {
            if self.matches(at, pattern, &index)? {
                names.push(index);
            }
        }
        Ok(list(names.iter().map(String::as_str)))
    }

    fn pairs(&mut self, at: usize, array: &str) -> Outcome {
        let mut pairs = Vec::new();
        for index in self.indices(at, array)? {
            let value = self.value_of(at, &format!("{array}({index})"))?;
            self.budget.charge_octets(at, value.len())?;
            pairs.extend([index, value]);
        }
        Ok(list(pairs.iter().map(String::as_str)))
    }

    fn has_variable(&self, name: &str) -> bool {
        let (scope, own) = self.variables.resolve(name);
        let is_attribute = matches!(scope, Scope::Object(object) if self.host.has_attribute(&object, &own));
        is_attribute || self.variables.exists(name)
    }

    fn set_array(&mut self, name: &str, pairs: &Word) -> Outcome {
        let all = list_of(pairs)?;
        let (pairs_of, []) = all.as_chunks() else {
            let problem = "an array is set from pairs of an index and a value; one is missing".to_owned();
            return Err(WordError { at: pairs.at, problem }.into());
        };
        for [index, value] in pairs_of {
            self.assign(pairs.at, &format!("{name}({index})"), value.to_string())?;
        }
        Ok(String::new())
    }

    fn assign_each(&mut self, values: &Word, names: &[Word]) -> Outcome {
        let all = list_of(values)?;
        for (place, name) in names.iter().enumerate() {
            self.assign(name.at, &name.text, all.get(place).map(ToString::to_string).unwrap_or_default())?;
        }
        Ok(list(all.iter().skip(names.len()).map(AsRef::as_ref)))
    }
}
