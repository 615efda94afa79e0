//! Executes `regexp`, `regsub` and the part of `file` that only takes names apart.

use regex_lite::{Regex, RegexBuilder};

use super::control::usage;
use super::interpreter::{Host, Interpreter, Outcome};
use super::number::MEASURED;
use super::{Word, WordError};

impl<H: Host> Interpreter<H> {
    /// Executes a command; `None` if it is neither `regexp` nor `regsub` nor `file`.
    pub(super) fn pattern(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        Some(match (words[0].text.as_str(), &words[1..]) {
            ("regexp", arguments) => self.regexp(at, arguments),
            ("regsub", arguments) => self.regsub(at, arguments),
            ("file", [part, name]) if PARTS.contains(&part.text.as_str()) => {
                Ok(part_of(&part.text, &name.text).to_owned())
            }
            ("file", [part, names @ ..]) if part.text == "join" => {
                Ok(names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join("/"))
            }
            ("file", [question, name]) if matches!(question.text.as_str(), "exists" | "executable") => {
                // A script asks for the program that runs it.
                let is_ns = part_of("tail", &name.text) == "ns";
                let is_there = is_ns || question.text == "exists" && self.host.has_file(&name.text);
                Ok(i64::from(is_there).to_string())
            }
            ("file", _) => usage(
                at,
                "file exists name; supported are exists, dirname, tail, rootname, extension and join",
            ),
            // Where and when a script is read is no part of it.
            ("clock" | "pwd" | "glob", _) => Ok(MEASURED.to_owned()),
            _ => return None,
        })
    }

    /// `regexp pattern text all first …`: whether the pattern matches, and what it and its groups match.
    fn regexp(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        const FORM: &str = "regexp -nocase -- pattern text all first";
        let (options, rest) = options(arguments);
        let [pattern, text, names @ ..] = rest else { return usage(at, FORM) };
        let ignores_case = is_known(&options, &["-nocase"], FORM)?.contains(&"-nocase");
        let expression = expression(pattern, ignores_case)?;
        let Some(found) = expression.captures(&text.text) else { return Ok("0".to_owned()) };
        for (group, name) in names.iter().enumerate() {
            let value = found.get(group).map_or("", |found| found.as_str()).to_owned();
            self.assign(name.at, &name.text, value)?;
        }
        Ok("1".to_owned())
    }

    /// `regsub -all pattern text replacement name`: the number of replacements, or without a name the text.
    fn regsub(&mut self, at: usize, arguments: &[Word]) -> Outcome {
        const FORM: &str = "regsub -all -nocase -- pattern text replacement name";
        let (options, rest) = options(arguments);
        let ([pattern, text, by, names @ ..], 0..=1) = (rest, rest.len().saturating_sub(3)) else {
            return usage(at, FORM);
        };
        let options = is_known(&options, &["-all", "-nocase"], FORM)?;
        let expression = expression(pattern, options.contains(&"-nocase"))?;
        let most = if options.contains(&"-all") { usize::MAX } else { 1 };
        let (mut replaced, mut end, mut count) = (String::new(), 0, 0);
        for found in expression.captures_iter(&text.text).take(most) {
            if replaced.len() > LONGEST {
                let problem = format!("this text grows beyond {LONGEST} octets");
                return Err(WordError { at, problem }.into());
            }
            let all = found.get(0).expect("the whole match");
            replaced.push_str(&text.text[end..all.start()]);
            replaced.push_str(&filled(&by.text, &found));
            (end, count) = (all.end(), count + 1);
        }
        replaced.push_str(&text.text[end..]);
        match names {
            [name] => self.assign(name.at, &name.text, replaced).map(|_| count.to_string()),
            _ => Ok(replaced),
        }
    }
}

/// The longest text that replacements make.
const LONGEST: usize = 1 << 20;

/// The parts of a file's name.
const PARTS: [&str; 4] = ["dirname", "tail", "rootname", "extension"];

fn part_of<'n>(part: &str, name: &'n str) -> &'n str {
    let (directory, tail) = name.rsplit_once('/').unwrap_or((".", name));
    let dot = tail.rfind('.').map_or(name.len(), |dot| name.len() - tail.len() + dot);
    match part {
        "dirname" if directory.is_empty() => "/",
        "dirname" => directory,
        "tail" => tail,
        "rootname" => &name[..dot],
        _ => &name[dot..],
    }
}

/// Returns the options before the other words; `--` ends them.
fn options(words: &[Word]) -> (Vec<&Word>, &[Word]) {
    let count = words.iter().take_while(|word| word.text.starts_with('-') && word.text != "--").count();
    let rest = &words[count..];
    let rest = rest.split_first().filter(|(first, _)| first.text == "--").map_or(rest, |(_, rest)| rest);
    (words[..count].iter().collect(), rest)
}

fn is_known<'w>(options: &[&'w Word], known: &[&str], form: &str) -> Result<Vec<&'w str>, WordError> {
    match options.iter().find(|option| !known.contains(&option.text.as_str())) {
        Some(option) => Err(WordError { at: option.at, problem: format!("the syntax is {form}") }),
        None => Ok(options.iter().map(|option| option.text.as_str()).collect()),
    }
}

fn expression(pattern: &Word, ignores_case: bool) -> Result<Regex, WordError> {
    let built = RegexBuilder::new(&pattern.text).case_insensitive(ignores_case).build();
    built.map_err(|problem| WordError {
        at: pattern.at,
        problem: format!("{:?} is not a supported pattern: {problem}", pattern.text),
    })
}

/// Returns a replacement with `&` and `\0` for the match and `\1` and up for its groups. regsub(n).
fn filled(by: &str, found: &regex_lite::Captures<'_>) -> String {
    let group = |number: usize| found.get(number).map_or("", |found| found.as_str());
    let (mut text, mut letters) = (String::new(), by.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '&' => text.push_str(group(0)),
            '\\' => match letters.next() {
                Some(digit) if digit.is_ascii_digit() => text.push_str(group(digit as usize - '0' as usize)),
                other => text.extend(other),
            },
            _ => text.push(letter),
        }
    }
    text
}
