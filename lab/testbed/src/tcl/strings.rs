//! Executes `string` and `format`.

use super::commands::position;
use super::control::usage;
use super::interpreter::{Host, Interpreter, Outcome};
use super::number::{MEASURED, Number};
use super::{Word, WordError};

/// The widest field of a format.
const WIDEST: usize = 1000;

impl<H: Host> Interpreter<H> {
    /// Executes a command; `None` if it is neither `string` nor `format`.
    pub(super) fn text(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        let texts: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
        let flag = |holds: bool| Ok(i64::from(holds).to_string());
        Some(match (words[0].text.as_str(), &texts[..]) {
            ("string", ["length", text]) => Ok(text.chars().count().to_string()),
            ("string", ["equal", one, other]) => flag(one == other),
            ("string", ["compare", one, other]) => Ok((one.cmp(other) as i64).to_string()),
            ("string", ["match", pattern, text]) => flag(matches(pattern, text)),
            ("string", ["tolower", text]) => Ok(text.to_lowercase()),
            ("string", ["toupper", text]) => Ok(text.to_uppercase()),
            ("string", ["trim", text]) => Ok(text.trim().to_owned()),
            ("string", ["trimleft", text]) => Ok(text.trim_start().to_owned()),
            ("string", ["trimright", text]) => Ok(text.trim_end().to_owned()),
            ("string", ["trim", text, letters]) => Ok(text.trim_matches(|c| letters.contains(c)).to_owned()),
            ("string", ["trimleft", text, letters]) => {
                Ok(text.trim_start_matches(|c| letters.contains(c)).to_owned())
            }
            ("string", ["trimright", text, letters]) => {
                Ok(text.trim_end_matches(|c| letters.contains(c)).to_owned())
            }
            ("string", ["first", wanted, text]) => {
                let found = text.find(wanted).map_or(-1, |octet| text[..octet].chars().count() as i64);
                Ok(found.to_string())
            }
            ("string", ["index", text, _]) => (|| {
                let index = usize::try_from(position(&words[3], text.chars().count())?);
                Ok(index.ok().and_then(|index| text.chars().nth(index)).map(String::from).unwrap_or_default())
            })(),
            ("string", ["range", text, _, _]) => (|| {
                let length = text.chars().count();
                let first = position(&words[3], length)?.max(0);
                let count = position(&words[4], length)?.saturating_sub(first).saturating_add(1);
                let count = usize::try_from(count).unwrap_or(0);
                Ok(text.chars().skip(first as usize).take(count).collect())
            })(),
            ("string", _) => usage(
                at,
                "string length, equal, compare, match, first, index, range, tolower, toupper or trim, and the text",
            ),
            ("format", [form, ..]) => formatted(at, form, &words[2..]).map_err(Into::into),
            ("format", []) => usage(at, "format form value …"),
            _ => return None,
        })
    }
}

/// Returns whether a text matches a pattern with `*` and `?`.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    // Behind the last star, and where it was tried.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at + 1, place));
            at += 1;
        } else if pattern.get(at).is_some_and(|c| *c == '?' || *c == text[place]) {
            (at, place) = (at + 1, place + 1);
        } else if let Some((behind, tried)) = star {
            (at, place) = (behind, tried + 1);
            star = Some((behind, tried + 1));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

/// `format` with `%d`, `%f`, `%e`, `%g`, `%x`, `%s` and `%c`'s flags, width and precision.
fn formatted(at: usize, form: &str, values: &[Word]) -> Result<String, WordError> {
    let wrong = |problem: String| WordError { at, problem };
    let (mut text, mut rest, mut values) = (String::new(), form, values.iter());
    while let Some(percent) = rest.find('%') {
        text.push_str(&rest[..percent]);
        rest = &rest[percent + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            (text, rest) = (text + "%", behind);
            continue;
        }
        let length = rest
            .find(|c: char| c.is_ascii_alphabetic())
            .ok_or_else(|| wrong(format!("the % in {form:?} is followed by no letter such as d, f or s")))?;
        let (flags, kind) = (&rest[..length], &rest[length..=length]);
        rest = &rest[length + 1..];
        let value = values.next().ok_or_else(|| wrong(format!("{form:?} needs more values")))?;
        let plain = flags.trim_start_matches(['-', '0', '+', ' ']);
        let (width, precision) = plain.split_once('.').unwrap_or((plain, "6"));
        let width = width.parse::<usize>().unwrap_or(0).min(WIDEST);
        let precision = precision.parse::<usize>().unwrap_or(0).min(WIDEST);
        let number = || {
            let problem = format!("{:?} is not a number, as %{kind} needs", value.text);
            Number::parse(&value.text).map(Number::real).ok_or(WordError { at: value.at, problem })
        };
        let field = match kind {
            _ if value.text == MEASURED => value.text.clone(),
            "s" => value.text.clone(),
            "d" | "i" | "u" => format!("{}", number()? as i64),
            "x" => format!("{:x}", number()? as i64),
            "f" => format!("{:.precision$}", number()?),
            "e" => format!("{:.precision$e}", number()?),
            "g" => number()?.to_string(),
            _ => return Err(wrong(format!("format %{kind} is not supported; use d, f, e, g, x or s"))),
        };
        let missing = width.saturating_sub(field.chars().count());
        text += &match (flags.starts_with('-'), flags.starts_with('0')) {
            (true, _) => field + &" ".repeat(missing),
            (_, true) => "0".repeat(missing) + &field,
            _ => " ".repeat(missing) + &field,
        };
    }
    Ok(text + rest)
}
