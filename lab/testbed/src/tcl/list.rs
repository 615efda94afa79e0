//! Lists of Tcl: text whose elements are separated by blanks; braces and quotes hold an element together.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::budget::check_length;
use super::control::usage_error;
use super::interpreter::{Interpreter, Outcome, ScriptHost, Stop};
use super::number::Number;
use super::parse::backslash;
use super::{Word, WordError};

/// The names of Tcl's commands on lists.
const COMMANDS: [&str; 12] = [
    "concat", "join", "lindex", "linsert", "list", "llength", "lrange", "lreplace", "lreverse", "lsearch",
    "lsort", "split",
];

/// Number of octets charged for each octet of a list, in addition to the octet itself.
pub(super) const LIST_COST: usize = 4;
/// Number of octets charged for each octet of a list that is sorted.
const SORTING_COST: usize = 16;

/// Parses a word as a list.
pub(crate) fn list_of(word: &Word) -> Result<Vec<Cow<'_, str>>, WordError> {
    list_at(&word.text, word.at)
}

/// Parses a text as a list; errors are reported at the position `at`.
pub(super) fn list_at(text: &str, at: usize) -> Result<Vec<Cow<'_, str>>, WordError> {
    parts(text).map_err(|problem| WordError { at, problem })
}

fn parts(text: &str) -> Result<Vec<Cow<'_, str>>, String> {
    let mut parts = Vec::new();
    let mut rest = without_blanks(text);
    while let Some(first) = rest.bytes().next() {
        let (part, behind) = match first {
            b'{' => braced(rest)?,
            b'"' => quoted(rest)?,
            _ => escaped(rest, is_blank),
        };
        if !behind.is_empty() && !behind.bytes().next().is_some_and(is_blank) {
            let first = first as char;
            return Err(format!("in the list {text:?} text follows {first:?} without a blank; insert one"));
        }
        parts.push(part);
        rest = without_blanks(behind);
    }
    Ok(parts)
}

const fn is_blank(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t'..=b'\r')
}

fn without_blanks(text: &str) -> &str {
    let start = text.bytes().position(|octet| !is_blank(octet)).unwrap_or(text.len());
    &text[start..]
}

fn braced(text: &str) -> Result<(Cow<'_, str>, &str), String> {
    let mut depth = 0;
    let mut is_escaped = false;
    for (offset, c) in text.bytes().enumerate() {
        match c {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok((text[1..offset].into(), &text[offset + 1..]));
        }
    }
    Err(format!("a brace of the list {text:?} is never closed; add a }}"))
}

fn quoted(text: &str) -> Result<(Cow<'_, str>, &str), String> {
    let (part, behind) = escaped(&text[1..], |octet| octet == b'"');
    let behind = behind.strip_prefix('"');
    Ok((part, behind.ok_or_else(|| format!("a quote of the list {text:?} is never closed; add a \""))?))
}

/// Returns the text up to an octet for which `ends` is true, with backslash sequences replaced, and the remaining text.
fn escaped(text: &str, ends: impl Fn(u8) -> bool) -> (Cow<'_, str>, &str) {
    let mut own = Cow::Borrowed("");
    let mut rest = text;
    loop {
        let length = rest.bytes().position(|octet| octet == b'\\' || ends(octet)).unwrap_or(rest.len());
        // Nothing is copied from an element without backslashes.
        own += &rest[..length];
        rest = &rest[length..];
        if !rest.starts_with('\\') {
            return (own, rest);
        }
        let (c, length) = backslash(rest);
        own.to_mut().push(c);
        rest = &rest[length..];
    }
}

/// Formats elements as a Tcl list.
pub(super) fn list<'e>(elements: impl IntoIterator<Item = &'e str>) -> String {
    list_continuation(false, elements)
}

/// Returns the text that must be appended to a list to add these elements. `has_elements` says whether the list is not
/// empty.
pub(super) fn list_continuation<'e>(
    mut has_elements: bool,
    elements: impl IntoIterator<Item = &'e str>,
) -> String {
    let mut list = String::new();
    for text in elements {
        list.push_str(if has_elements { " " } else { "" });
        push_element(&mut list, text, !has_elements);
        has_elements = true;
    }
    list
}

/// Appends an element in the form that `TclScanElement` and `TclConvertElement` of Tcl 8.6 produce: unchanged, in
/// braces, or with backslashes.
fn push_element(list: &mut String, text: &str, is_first: bool) {
    let is_special = |octet: u8| {
        is_blank(octet) || matches!(octet, b'{' | b'}' | b'[' | b']' | b'$' | b';' | b'\\' | b'"' | b'#')
    };
    if !text.is_empty() && !text.bytes().any(is_special) {
        return list.push_str(text);
    }
    let (mut depth, mut must_escape) = (0, false);
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            '\\' => must_escape |= matches!(letters.next(), None | Some('\n')),
            _ => {}
        }
        must_escape |= depth < 0;
    }
    must_escape |= depth != 0;
    let starts_group = text.starts_with(['{', '"']) || is_first && text.starts_with('#');
    let wants_braces = text.is_empty()
        || starts_group
        || text.contains([' ', '\t', '\n', '\r', '\u{b}', '\u{c}', '[', '$', ';', '\\']);
    let wants_escapes = text.contains([']', '"']);
    if !(must_escape || wants_braces || wants_escapes) {
        list.push_str(text);
    } else if !must_escape && wants_braces {
        list.extend(["{", text, "}"]);
    } else {
        for (index, c) in text.chars().enumerate() {
            let is_special = "[]$;\\\" ".contains(c)
                || must_escape && "{}".contains(c)
                || c == '#' && index == 0 && is_first;
            match c {
                '\n' => list.push_str("\\n"),
                '\t' => list.push_str("\\t"),
                '\r' => list.push_str("\\r"),
                '\u{b}' => list.push_str("\\v"),
                '\u{c}' => list.push_str("\\f"),
                c => list.extend(is_special.then_some('\\').into_iter().chain([c])),
            }
        }
    }
}

impl<H: ScriptHost> Interpreter<H> {
    /// Executes a command on lists; `None` for another command.
    pub(super) fn list_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        if !COMMANDS.contains(&words[0].text.as_str()) {
            return None;
        }
        let octets: usize = words.iter().map(|word| word.text.len() * LIST_COST).sum();
        if let Err(stop) = self.budget.charge_octets(at, octets) {
            return Some(Err(stop));
        }
        Some(match (words[0].text.as_str(), &words[1..]) {
            ("list", elements) => Ok(list(elements.iter().map(|word| word.text.as_str()))),
            ("concat", lists) => {
                let parts = lists.iter().map(|word| word.text.trim()).filter(|part| !part.is_empty());
                Ok(parts.collect::<Vec<_>>().join(" "))
            }
            ("llength", [list]) => list_of(list).map(|list| list.len().to_string()).map_err(Into::into),
            ("lindex", [list]) => Ok(list.text.clone()),
            // An index may be a list: into the list, into its element, and so on.
            ("lindex", [source, index]) => list_of(index).map_err(Into::into).and_then(|indices| {
                let word = |own: &Cow<'_, str>| Word { text: own.to_string(), ..index.clone() };
                self.element(source, indices.iter().map(word))
            }),
            ("lindex", [source, indices @ ..]) => self.element(source, indices.iter().cloned()),
            ("lrange", [source, first, last]) => (|| {
                let source = list_of(source)?;
                let (first, last) = (position(first, source.len())?.max(0), position(last, source.len())?);
                let count = usize::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(0);
                Ok(list(source.iter().skip(first as usize).take(count).map(AsRef::as_ref)))
            })(),
            ("lreverse", [source]) => (|| Ok(list(list_of(source)?.iter().rev().map(AsRef::as_ref))))(),
            ("linsert", [source, index, more @ ..]) => (|| {
                let mut all = list_of(source)?;
                // An index after the end means `end` here.
                let last = all.len() as i64;
                let at = position(index, all.len() + 1)?.clamp(0, last) as usize;
                all.splice(at..at, more.iter().map(|word| word.text.as_str().into()));
                Ok(list(all.iter().map(AsRef::as_ref)))
            })(),
            ("lreplace", [source, first, last, more @ ..]) => (|| {
                let mut all = list_of(source)?;
                let length = all.len() as i64;
                let first = position(first, all.len())?.clamp(0, length);
                let behind = position(last, all.len())?.saturating_add(1).clamp(first, length);
                all.splice(
                    first as usize..behind as usize,
                    more.iter().map(|word| word.text.as_str().into()),
                );
                Ok(list(all.iter().map(AsRef::as_ref)))
            })(),
            ("lsearch", [options @ .., source, wanted]) => self.search(options, source, wanted),
            ("lsort", [options @ .., source]) => {
                let spent = self.budget.charge_octets(at, source.text.len() * SORTING_COST);
                spent.and_then(|()| sorted(options, source))
            }
            ("join", [list]) => list_of(list).map(|list| list.join(" ")).map_err(Into::into),
            ("join", [list, between]) => (|| {
                let all = list_of(list)?;
                check_length(at, all.len().saturating_mul(between.text.len()))?;
                Ok(all.join(&between.text))
            })(),
            ("split", [text]) => Ok(split(&text.text, " \t\n\r")),
            ("split", [text, letters]) => {
                let spent = self.budget.charge_octets(at, text.text.len().saturating_mul(letters.text.len()));
                spent.map(|()| split(&text.text, &letters.text))
            }
            ("llength" | "lindex" | "lrange" | "join" | "split", _) => usage_error(
                at,
                "llength list, lindex list index, lrange list first last, join list text, split text letters",
            ),
            ("lreverse" | "linsert" | "lreplace" | "lsort", _) => usage_error(
                at,
                "lreverse list, linsert list index value, lreplace list first last value, lsort list",
            ),
            _ => usage_error(at, SEARCH_SYNTAX),
        })
    }

    /// Executes `lindex` with several indices: the first selects an element of the list, the second an element of that
    /// element, and so on.
    fn element(&mut self, source: &Word, indices: impl Iterator<Item = Word>) -> Outcome {
        let mut own = source.text.clone();
        for index in indices {
            self.budget.charge_octets(index.at, own.len() * LIST_COST)?;
            let list = list_at(&own, source.at)?;
            let index = usize::try_from(position(&index, list.len())?);
            own = index.ok().and_then(|index| list.get(index)).map(ToString::to_string).unwrap_or_default();
        }
        Ok(own)
    }

    /// Executes `lsearch -glob list pattern`, which returns the index of the first element that matches; with `-all`,
    /// the indices of all elements that match.
    fn search(&mut self, options: &[Word], source: &Word, wanted: &Word) -> Outcome {
        let (mut kind, mut wants_all) = ("-glob", false);
        for option in options {
            match option.text.as_str() {
                "-all" => wants_all = true,
                own @ ("-glob" | "-exact" | "-regexp") => kind = own,
                _ => return usage_error(option.at, SEARCH_SYNTAX),
            }
        }
        let pattern = if kind == "-regexp" { Some(self.pattern(wanted, false)?) } else { None };
        let mut found = Vec::new();
        for (index, own) in list_of(source)?.iter().enumerate() {
            let is_found = match &pattern {
                Some(pattern) => self.has_match(wanted.at, pattern, own)?,
                None if kind == "-exact" => *own == wanted.text,
                None => self.matches(wanted.at, &wanted.text, own)?,
            };
            if is_found {
                found.push(index.to_string());
                if !wants_all {
                    break;
                }
            }
        }
        Ok(if found.is_empty() && !wants_all { "-1".to_owned() } else { found.join(" ") })
    }
}

const SEARCH_SYNTAX: &str = "lsearch -glob -all list pattern, with -glob, -exact or -regexp";

/// Splits a text at each of these characters; if there are none, into single characters. split(n).
fn split(text: &str, letters: &str) -> String {
    let mut pieces: Vec<&str> = match letters {
        "" => text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect(),
        _ => text.split(|c| letters.contains(c)).collect(),
    };
    if text.is_empty() {
        pieces.clear();
    }
    list(pieces)
}

/// Executes `lsort -integer list`, with all options of `lsort(n)` except those that call a command.
fn sorted(options: &[Word], source: &Word) -> Outcome {
    let (mut kind, mut is_reversed, mut is_unique) = ("-ascii", false, false);
    for option in options {
        match option.text.as_str() {
            own @ ("-integer" | "-real" | "-ascii") => kind = own,
            "-decreasing" => is_reversed = true,
            "-increasing" => is_reversed = false,
            "-unique" => is_unique = true,
            _ => return usage_error(option.at, "lsort -integer -decreasing -unique list"),
        }
    }
    let number = |text: &str| match (kind, Number::parse(text)) {
        ("-ascii", _) => Ok(Number::Whole(0)),
        ("-integer", Some(number @ Number::Whole(_))) => Ok(number),
        ("-real", Some(number)) => Ok(Number::Real(number.to_f64())),
        _ => {
            Number::refuse_unsupported(text, source.at)?;
            let problem = format!("{text:?} is not a number, which lsort {kind} needs");
            Err(Stop::Wrong(WordError { at: source.at, problem }))
        }
    };
    let all = list_of(source)?;
    let mut all = all.iter().map(|text| Ok((number(text)?, text))).collect::<Result<Vec<_>, Stop>>()?;
    let order = |(a, x): &(Number, &Cow<'_, str>), (b, y): &(Number, &Cow<'_, str>)| match kind {
        "-ascii" => x.cmp(y),
        _ => a.compare(*b),
    };
    all.sort_by(|one, other| if is_reversed { order(other, one) } else { order(one, other) });
    if is_unique {
        // The last of equal elements is kept.
        all.reverse();
        all.dedup_by(|one, other| order(one, other) == Ordering::Equal);
        all.reverse();
    }
    Ok(list(all.iter().map(|(_, text)| text.as_ref())))
}

/// Parses an index into a list or a text of `length` elements: a number or `end`, optionally plus or minus a number.
pub(super) fn position(word: &Word, length: usize) -> Result<i64, Stop> {
    Number::refuse_unsupported(&word.text, word.at)?;
    let problem = || {
        let problem = format!("{:?} is not an index; write 3, end or end-1", word.text);
        Stop::Wrong(WordError { at: word.at, problem })
    };
    let whole = |text: &str| match Number::parse(text) {
        Some(Number::Whole(number)) if !text.starts_with(char::is_whitespace) => Ok(number),
        _ => Err(problem()),
    };
    if let Some(Number::Whole(index)) = Number::parse(&word.text) {
        return Ok(index);
    }
    let text = word.text.as_str();
    let (base, rest) = match text.strip_prefix("end") {
        Some(rest) => (length as i64 - 1, rest),
        None => {
            // A sign at the start belongs to the first number.
            let operator = text.char_indices().skip(1).find(|(_, c)| "+-".contains(*c));
            let (first, rest) = text.split_at(operator.map_or(text.len(), |(at, _)| at));
            (whole(first)?, rest)
        }
    };
    match rest.chars().next() {
        None => Ok(base),
        Some('+' | '-') if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            Ok(base.saturating_add(whole(rest)?))
        }
        _ => Err(problem()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_elements_may_contain_blanks() {
        assert_eq!(parts(" a {b c}  \"d e\" {} ").unwrap(), ["a", "b c", "d e", ""]);
        assert_eq!(parts("{a {b c}} d").unwrap(), ["a {b c}", "d"]);
        assert!(parts("{a").is_err() && parts("{a}b").is_err());
    }

    #[test]
    fn elements_survive_encoding_as_a_list() {
        let hard = ["", "a b", "{a} b", "$x", "[run]", "{{", "say \"x\""];
        assert_eq!(parts(&list(hard)).unwrap(), hard);
    }
}
