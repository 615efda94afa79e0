//! Executes `regexp`, `regsub` and the part of `file` that only takes names apart.

use super::budget::{MAX_TEXT_OCTETS, check_length};
use super::control::usage_error;
use super::interpreter::{Interpreter, Outcome, ScriptHost, Stop};
use super::number::MEASURED_VALUE;
use super::pattern::{Pattern, parse};
use super::search::{GroupRanges, Search};
use super::{Word, WordError};

impl<H: ScriptHost> Interpreter<H> {
    /// Executes `regexp`, `regsub` or `file`; `None` for another command.
    pub(super) fn regexp_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        Some(match (words[0].text.as_str(), &words[1..]) {
            ("regexp", arguments) => self.regexp(at, arguments),
            ("regsub", arguments) => self.regsub(at, arguments),
            ("file", [part, name]) if FILE_NAME_PARTS.contains(&part.text.as_str()) => {
                Ok(name_part(&part.text, &name.text).to_owned())
            }
            ("file", [part, names @ ..]) if part.text == "join" && !names.is_empty() => {
                Ok(join_names(names.iter().map(|name| name.text.as_str())))
            }
            ("file", [question, name]) if matches!(question.text.as_str(), "exists" | "executable") => {
                // A script may look for the program ns, which runs it.
                let is_ns = name_part("tail", &name.text) == "ns";
                let is_there = is_ns || question.text == "exists" && self.host.has_file(&name.text);
                Ok(i64::from(is_there).to_string())
            }
            ("file", _) => usage_error(
                at,
                "file exists name; supported are exists, dirname, tail, rootname, extension and join",
            ),
            // The result must not depend on where and when a script is read.
            ("clock" | "pwd" | "glob", _) => Ok(MEASURED_VALUE.to_owned()),
            _ => return None,
        })
    }

    /// Executes `regexp pattern text all first …`, which returns whether the pattern matches. Sets the variables to the
    /// texts that the pattern and its groups match.
    fn regexp(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        const SYNTAX: &str = "regexp -nocase -- pattern text all first";
        let (options, rest) = options(arguments);
        let [pattern, text, names @ ..] = rest else { return usage_error(at, SYNTAX) };
        let ignores_case = is_known(&options, &["-nocase"], SYNTAX)?.contains(&"-nocase");
        let (pattern, letters) =
            (self.pattern(pattern, ignores_case)?, text.text.chars().collect::<Vec<_>>());
        let search =
            Search { text: &letters, pattern: &pattern, from: 0, budget: &mut self.budget, at }.first()?;
        let Some(found) = search else { return Ok("0".to_owned()) };
        for (group, name) in names.iter().enumerate() {
            self.assign(name.at, &name.text, group_letters(&letters, &found, group).collect())?;
        }
        Ok("1".to_owned())
    }

    /// Parses a pattern, and charges the work to the script's budget.
    pub(super) fn pattern(&mut self, word: &Word, ignores_case: bool) -> Result<Pattern, Stop> {
        self.budget.charge_octets(word.at, word.text.len() * PATTERN_COST)?;
        parse(&word.text, ignores_case).map_err(|problem| {
            let problem = format!("{:?} is not a supported pattern: {problem}", word.text);
            Stop::Limit(WordError { at: word.at, problem })
        })
    }

    /// Returns whether a text matches a pattern; errors are reported at the position `at`.
    pub(super) fn has_match(&mut self, at: usize, pattern: &Pattern, text: &str) -> Result<bool, Stop> {
        self.budget.charge_octets(at, text.len())?;
        let text: Vec<char> = text.chars().collect();
        let search = Search { text: &text, pattern, from: 0, budget: &mut self.budget, at }.first()?;
        Ok(search.is_some())
    }

    /// Executes `regsub -all pattern text replacement name`, which sets the variable `name` to the new text and returns
    /// the number of replacements. Without a name it returns the new text.
    fn regsub(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        const SYNTAX: &str = "regsub -all -nocase -- pattern text replacement name";
        let (options, rest) = options(arguments);
        let ([pattern, text, by, names @ ..], 0..=1) = (rest, rest.len().saturating_sub(3)) else {
            return usage_error(at, SYNTAX);
        };
        let options = is_known(&options, &["-all", "-nocase"], SYNTAX)?;
        // generic/tclCmdMZ.c: an empty pattern matches in front of each letter, and not behind the last, if the
        // replacement is plain text.
        let is_plain = options.contains(&"-all") && pattern.text.is_empty() && !by.text.contains(['&', '\\']);
        let pattern = self.pattern(pattern, options.contains(&"-nocase"))?;
        let letters: Vec<char> = text.text.chars().collect();
        let last = if is_plain { letters.len().checked_sub(1) } else { Some(letters.len()) };
        let (mut replaced, mut from, mut count) = (String::new(), 0, 0);
        while last.is_some_and(|last| from <= last) && (count == 0 || options.contains(&"-all")) {
            let mut search = Search { text: &letters, pattern: &pattern, from, budget: &mut self.budget, at };
            let Some(found) = search.first()? else { break };
            let (start, end) = found[0].unwrap_or_default();
            replaced.extend(&letters[from..start]);
            push_replacement(&mut replaced, &by.text, |group| group_letters(&letters, &found, group));
            check_length(at, replaced.len())?;
            (from, count) = (end, count + 1);
            // After an empty match, the search continues one letter later.
            if start == end {
                replaced.extend(letters.get(end));
                from += 1;
            }
        }
        replaced.extend(letters.get(from..).unwrap_or_default());
        match names {
            [name] => self.assign(name.at, &name.text, replaced).map(|_| count.to_string()),
            _ => Ok(replaced),
        }
    }
}

/// Number of octets charged for each octet of a pattern.
const PATTERN_COST: usize = 64;

/// The parts of a file's name that `file` can return.
const FILE_NAME_PARTS: [&str; 4] = ["dirname", "tail", "rootname", "extension"];

fn name_part<'n>(part: &str, name: &'n str) -> &'n str {
    let path = name.trim_end_matches('/');
    let (directory, tail) = path.rsplit_once('/').map_or((None, path), |(above, tail)| (Some(above), tail));
    let last = name.rsplit_once('/').map_or(name, |(_, last)| last);
    let dot = last.rfind('.').map_or(name.len(), |dot| name.len() - last.len() + dot);
    match (part, directory.map(|directory| directory.trim_end_matches('/'))) {
        ("dirname", Some("")) => "/",
        ("dirname", None) if path.len() < name.len() && path.is_empty() => "/",
        ("dirname", directory) => directory.unwrap_or("."),
        ("tail", _) => tail,
        ("rootname", _) => &name[..dot],
        _ => &name[dot..],
    }
}

/// Executes `file join`: a name that begins with `/` or `~` replaces all names before it (`TclpNativeJoinPath` of Tcl
/// 8.6).
fn join_names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut path = String::new();
    for name in names {
        if name.starts_with(['/', '~']) {
            path.clear();
        }
        if name.starts_with('/') {
            path.push('/');
        }
        // A ~ inside of a path has no meaning.
        let name =
            name.strip_prefix("./").filter(|rest| rest.starts_with('~') && !path.is_empty()).unwrap_or(name);
        for part in name.split('/').filter(|part| !part.is_empty()) {
            path.push_str(if path.is_empty() || path.ends_with('/') { "" } else { "/" });
            path.push_str(part);
        }
    }
    path
}

/// Splits words into the options at their start and the other words; `--` ends the options.
fn options(words: &[Word]) -> (Vec<&Word>, &[Word]) {
    let count = words.iter().take_while(|word| word.text.starts_with('-') && word.text != "--").count();
    let rest = &words[count..];
    let rest = rest.split_first().filter(|(first, _)| first.text == "--").map_or(rest, |(_, rest)| rest);
    (words[..count].iter().collect(), rest)
}

fn is_known<'w>(options: &[&'w Word], known: &[&str], form: &str) -> Result<Vec<&'w str>, Stop> {
    match options.iter().find(|option| !known.contains(&option.text.as_str())) {
        Some(option) => usage_error(option.at, form),
        None => Ok(options.iter().map(|option| option.text.as_str()).collect()),
    }
}

/// Returns the characters that a group matched.
fn group_letters<'l>(
    letters: &'l [char],
    found: &GroupRanges,
    group: usize,
) -> impl Iterator<Item = &'l char> {
    let (start, end) = found.get(group).copied().flatten().unwrap_or_default();
    letters[start..end].iter()
}

/// Appends a replacement, up to the maximum length of texts. In it `&` and `\0` stand for the match, `\1` and up for
/// its groups. regsub(n).
fn push_replacement<'l, G: Iterator<Item = &'l char>>(
    text: &mut String,
    by: &str,
    group: impl Fn(usize) -> G,
) {
    let mut letters = by.chars();
    while let Some(letter) = letters.next().filter(|_| text.len() <= MAX_TEXT_OCTETS) {
        match letter {
            '&' => text.extend(group(0)),
            '\\' => match letters.next() {
                Some(digit) if digit.is_ascii_digit() => text.extend(group(digit as usize - '0' as usize)),
                Some(special @ ('&' | '\\')) => text.push(special),
                other => text.extend(['\\'].into_iter().chain(other)),
            },
            _ => text.push(letter),
        }
    }
}
