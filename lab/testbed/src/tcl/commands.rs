//! Executes Tcl's commands on variables and lists.

use super::control::{list_of, usage};
use super::interpreter::{Host, Interpreter, Outcome};
use super::list::list;
use super::number::{MEASURED, Number};
use super::variables::Scope;
use super::{Word, WordError};

/// The names of all supported commands of Tcl.
pub(crate) const COMMANDS: [&str; 42] = [
    "append", "array", "break", "catch", "concat", "continue", "error", "eval", "expr", "file", "for",
    "foreach", "format", "global", "if", "incr", "info", "join", "lappend", "lassign", "lindex", "linsert",
    "list", "llength", "lrange", "lreplace", "lreverse", "lsearch", "lsort", "proc", "regexp", "regsub",
    "return", "set", "source", "split", "string", "switch", "unset", "uplevel", "upvar", "while",
];

impl<H: Host> Interpreter<H> {
    /// Executes a command; `None` if it is not one of these.
    pub(super) fn plain(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        Some(match (words[0].text.as_str(), &words[1..]) {
            ("set", [name]) => self.read(name),
            ("set", [name, value]) => {
                // Nodes and links are called like the variable that holds them, unless it is a procedure's own.
                let (scope, own) = self.variables.place(&name.text);
                if !matches!(scope, Scope::Call(_)) {
                    self.host.assigned(&own, &value.text);
                }
                self.assign(name.at, &name.text, value.text.clone())
            }
            ("unset", names) => {
                let names = names.iter().filter(|name| !name.text.starts_with('-'));
                names.for_each(|name| self.variables.unset(&name.text));
                Ok(String::new())
            }
            ("global", names) => {
                names.iter().for_each(|name| self.variables.link_global(&name.text));
                Ok(String::new())
            }
            ("upvar", arguments) => self.upvar(at, arguments),
            ("incr", [name]) => self.increment(name, &Word { text: "1".to_owned(), ..name.clone() }),
            ("incr", [name, step]) => self.increment(name, step),
            ("append", [name, more @ ..]) => {
                let more: String = more.iter().map(|word| word.text.as_str()).collect();
                let old = self.read(name).unwrap_or_default();
                self.assign(name.at, &name.text, old + &more)
            }
            ("lappend", [name, more @ ..]) => {
                let old = self.read(name).unwrap_or_default().trim().to_owned();
                let all = [old, list(more.iter().map(|word| word.text.as_str()))];
                let all: Vec<_> = all.into_iter().filter(|part| !part.is_empty()).collect();
                self.assign(name.at, &name.text, all.join(" "))
            }
            ("expr", [only]) => self.expression(only.script()),
            ("expr", [first, ..]) => {
                let joined = words[1..].iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
                let whole = Word { text: joined, at: first.at, verbatim: None };
                self.expression(whole.script())
            }
            ("set" | "incr" | "append" | "lappend", _) => {
                usage(at, "set name value, incr name, lappend name value")
            }
            ("expr", []) => usage(at, "expr {expression}"),
            _ => {
                let done = self.list_command(words).or_else(|| self.array(words));
                return done.or_else(|| self.text(words)).or_else(|| self.pattern(words));
            }
        })
    }

    fn list_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        Some(match (words[0].text.as_str(), &words[1..]) {
            ("list", elements) => Ok(list(elements.iter().map(|word| word.text.as_str()))),
            ("concat", lists) => {
                let parts = lists.iter().map(|word| word.text.trim()).filter(|part| !part.is_empty());
                Ok(parts.collect::<Vec<_>>().join(" "))
            }
            ("llength", [list]) => list_of(list).map(|list| list.len().to_string()).map_err(Into::into),
            ("lindex", [list, index]) => (|| {
                let list = list_of(list)?;
                let index = position(index, list.len())?;
                Ok(usize::try_from(index).ok().and_then(|index| list.get(index).cloned()).unwrap_or_default())
            })(),
            ("lrange", [source, first, last]) => (|| {
                let source = list_of(source)?;
                let (first, last) = (position(first, source.len())?.max(0), position(last, source.len())?);
                let count = usize::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(0);
                Ok(list(source.iter().skip(first as usize).take(count).map(String::as_str)))
            })(),
            ("lreverse", [list]) => (|| {
                let all = list_of(list)?;
                Ok(self::list(all.iter().rev().map(String::as_str)))
            })(),
            ("linsert", [source, index, more @ ..]) => (|| {
                let mut all = list_of(source)?;
                // Behind the end is `end` here.
                let last = all.len() as i64;
                let at = position(index, all.len() + 1)?.clamp(0, last) as usize;
                all.splice(at..at, more.iter().map(|word| word.text.clone()));
                Ok(list(all.iter().map(String::as_str)))
            })(),
            ("lreplace", [source, first, last, more @ ..]) => (|| {
                let mut all = list_of(source)?;
                let length = all.len() as i64;
                let first = position(first, all.len())?.clamp(0, length);
                let behind = position(last, all.len())?.saturating_add(1).clamp(first, length);
                all.splice(first as usize..behind as usize, more.iter().map(|word| word.text.clone()));
                Ok(list(all.iter().map(String::as_str)))
            })(),
            ("lsearch", [.., source, wanted]) => (|| {
                let found = list_of(source)?.iter().position(|own| *own == wanted.text);
                Ok(found.map_or(-1, |index| index as i64).to_string())
            })(),
            ("lsort", [options @ .., source]) => sorted(options, source).map_err(Into::into),
            ("join", [list]) => list_of(list).map(|list| list.join(" ")).map_err(Into::into),
            ("join", [list, between]) => {
                list_of(list).map(|list| list.join(&between.text)).map_err(Into::into)
            }
            ("split", [text]) => Ok(list(text.text.split(char::is_whitespace))),
            ("split", [text, at]) => Ok(list(text.text.split(|c| at.text.contains(c)))),
            ("llength" | "lindex" | "lrange" | "join" | "split", _) => usage(
                at,
                "llength list, lindex list index, lrange list first last, join list text, split text letters",
            ),
            ("lreverse" | "linsert" | "lreplace" | "lsearch" | "lsort", _) => usage(
                at,
                "lreverse list, linsert list index value, lreplace list first last value, lsearch list value, lsort list",
            ),
            _ => return None,
        })
    }

    /// Assigns a value to a variable; an attribute of a host's object is set by the host.
    pub(super) fn assign(&mut self, at: usize, name: &str, value: String) -> Outcome {
        if let (Scope::Object(object), attribute) = self.variables.place(name)
            && self.host.owns(&object, &attribute)
        {
            return self.ask(at, &object, &["set", &attribute, &value]);
        }
        self.variables.set(name, value.clone()).map_err(|problem| WordError { at, problem })?;
        Ok(value)
    }

    /// Returns the value of a variable; of an attribute of a host's object the host's.
    pub(super) fn value_of(&mut self, at: usize, name: &str) -> Outcome {
        if let (Scope::Object(object), attribute) = self.variables.place(name)
            && self.host.owns(&object, &attribute)
        {
            return self.ask(at, &object, &["set", &attribute]);
        }
        match self.variables.get(name) {
            Ok(value) => Ok(value.to_owned()),
            // The environment is that of the machine, on which nothing may depend.
            Err(_) if name.trim_start_matches("::").starts_with("env(") => Ok(MEASURED.to_owned()),
            Err(problem) => Err(WordError { at, problem }.into()),
        }
    }

    fn read(&mut self, name: &Word) -> Outcome {
        self.value_of(name.at, &name.text)
    }

    fn increment(&mut self, name: &Word, step: &Word) -> Outcome {
        let old = if self.variables.exists(&name.text) { self.read(name)? } else { "0".to_owned() };
        if [&old, &step.text].iter().any(|value| *value == MEASURED) {
            return self.assign(name.at, &name.text, MEASURED.to_owned());
        }
        let (old, step) = (whole(&Word { text: old, ..name.clone() })?, whole(step)?);
        let problem = || format!("the variable \"{}\" is too large to grow", name.text);
        let sum = old.checked_add(step).ok_or_else(|| WordError { at: name.at, problem: problem() })?;
        self.assign(name.at, &name.text, sum.to_string())
    }

    /// Makes names refer to variables of a caller: `upvar 1 theirs own`.
    fn upvar(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        let is_paired = arguments.len().is_multiple_of(2);
        let (depth, pairs) = match self.level(arguments) {
            (_, _) if is_paired => (self.variables.depth().saturating_sub(1), arguments),
            levelled => levelled,
        };
        let (pairs, []) = pairs.as_chunks() else { return usage(at, "upvar 1 name own") };
        for [theirs, own] in pairs {
            let place = self.variables.place_at(depth, &theirs.text);
            self.variables.link(&own.text, place);
        }
        Ok(String::new())
    }
}

/// `lsort -integer list`, with the options of `lsort(n)` that need no command.
fn sorted(options: &[Word], source: &Word) -> Result<String, WordError> {
    let mut all = list_of(source)?;
    let (mut is_numeric, mut is_reversed, mut is_unique) = (false, false, false);
    for option in options {
        match option.text.as_str() {
            "-integer" | "-real" => is_numeric = true,
            "-decreasing" => is_reversed = true,
            "-unique" => is_unique = true,
            "-ascii" | "-increasing" => {}
            _ => return usage_of(option.at, "lsort -integer -decreasing -unique list"),
        }
    }
    let number = |text: &String| Number::parse(text).map_or(f64::NAN, Number::real);
    match is_numeric {
        true => all.sort_by(|a, b| number(a).total_cmp(&number(b))),
        false => all.sort(),
    }
    if is_reversed {
        all.reverse();
    }
    if is_unique {
        all.dedup();
    }
    Ok(list(all.iter().map(String::as_str)))
}

fn usage_of<T>(at: usize, form: &str) -> Result<T, WordError> {
    Err(WordError { at, problem: format!("the syntax is {form}") })
}

fn whole(word: &Word) -> Result<i64, WordError> {
    match Number::parse(&word.text) {
        Some(Number::Whole(number)) => Ok(number),
        _ => Err(WordError { at: word.at, problem: format!("{:?} is not a whole number", word.text) }),
    }
}

/// Parses an index into a list: a number, `end`, or `end-1`.
pub(super) fn position(word: &Word, length: usize) -> Result<i64, WordError> {
    let last = length as i64 - 1;
    match word.text.strip_prefix("end") {
        Some("") => Ok(last),
        Some(back) if back.starts_with('-') => {
            Ok(last.saturating_add(whole(&Word { text: back.to_owned(), ..word.clone() })?))
        }
        _ => whole(word),
    }
}
