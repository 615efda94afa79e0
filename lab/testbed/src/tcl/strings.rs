//! Executes `string` and `format`.

use super::budget::check_length;
use super::commands::whole_number;
use super::control::usage_error;
use super::interpreter::{Interpreter, Outcome, ScriptHost, Stop};
use super::list::position;
use super::number::{MEASURED_VALUE, Number, format_general, format_scientific};
use super::{Word, WordError};

/// The largest width of a field of `format`.
const MAX_FIELD_WIDTH: u64 = 1000;

impl<H: ScriptHost> Interpreter<H> {
    /// Executes `string` or `format`; `None` for another command.
    pub(super) fn string_command(&mut self, words: &[Word]) -> Option<Outcome> {
        let at = words[0].at;
        let texts: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
        let flag = |holds: bool| Ok(i64::from(holds).to_string());
        Some(match (words[0].text.as_str(), &texts[..]) {
            ("string", ["length", text]) => Ok(text.chars().count().to_string()),
            ("string", ["equal", one, other]) => flag(one == other),
            ("string", ["compare", one, other]) => Ok((one.cmp(other) as i64).to_string()),
            ("string", ["match", pattern, text]) => self.matches(at, pattern, text).and_then(flag),
            ("string", ["tolower", text]) => Ok(text.to_lowercase()),
            ("string", ["toupper", text]) => Ok(text.to_uppercase()),
            ("string", ["trim", text]) => Ok(text.trim().to_owned()),
            ("string", ["trimleft", text]) => Ok(text.trim_start().to_owned()),
            ("string", ["trimright", text]) => Ok(text.trim_end().to_owned()),
            ("string", [side @ ("trim" | "trimleft" | "trimright"), text, letters]) => {
                let spent = self.budget.charge_octets(at, text.len().saturating_mul(letters.len()));
                let is_cut = |c| letters.contains(c);
                spent.map(|()| {
                    let left = if *side == "trimright" { text } else { text.trim_start_matches(is_cut) };
                    let both = if *side == "trimleft" { left } else { left.trim_end_matches(is_cut) };
                    both.to_owned()
                })
            }
            // Tcl never finds an empty text.
            ("string", ["first", "", _]) => Ok("-1".to_owned()),
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
            ("string", _) => usage_error(
                at,
                "string SUBCOMMAND text, with length, equal, compare, match, first, index, range, tolower, toupper or trim",
            ),
            ("format", [form, ..]) => formatted(at, form, &words[2..]),
            ("format", []) => usage_error(at, "format form value …"),
            _ => return None,
        })
    }

    /// Returns whether a text matches a pattern of `string match`.
    pub(super) fn matches(&mut self, at: usize, pattern: &str, text: &str) -> Result<bool, Stop> {
        self.budget.charge_octets(at, pattern.len().saturating_mul(text.len()))?;
        Ok(matches(pattern, text))
    }
}

/// Returns whether a text matches a pattern with `*`, `?`, `[a-z]` and `\`: `Tcl_StringMatch` of Tcl 8.6.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    // The position after the last star in the pattern, and the position in the text up to which the star was tried.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at + 1, place));
            at += 1;
        } else if let Some(behind) = matches_letter(&pattern, at, text[place]) {
            (at, place) = (behind, place + 1);
        } else if let Some((behind, tried)) = star {
            (at, place) = (behind, tried + 1);
            star = Some((behind, tried + 1));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

/// Returns the index in the pattern after the part that matches a character; `None` if that part does not match it.
fn matches_letter(pattern: &[char], at: usize, letter: char) -> Option<usize> {
    match pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => matches_set(pattern, at + 1, letter),
        '\\' => (*pattern.get(at + 1)? == letter).then_some(at + 2),
        c => (*c == letter).then_some(at + 1),
    }
}

/// Returns the index after a set in a pattern, such as `a-z_]`, if the set contains the character. The closing bracket
/// may be missing.
fn matches_set(pattern: &[char], mut at: usize, letter: char) -> Option<usize> {
    loop {
        let first = *pattern.get(at).filter(|c| **c != ']')?;
        let is_range = pattern.get(at + 1) == Some(&'-');
        let last = if is_range { *pattern.get(at + 2)? } else { first };
        at += if is_range { 3 } else { 1 };
        if (first.min(last)..=first.max(last)).contains(&letter) {
            let close = pattern[at..].iter().position(|c| *c == ']');
            return Some(close.map_or(pattern.len(), |close| at + close + 1));
        }
    }
}

/// A field of a format string, such as `%-8.3f`.
struct Field {
    flags: String,
    width: usize,
    precision: Option<usize>,
    kind: char,
}

/// The arguments of `format` that have not been used yet.
struct Values<'w> {
    at: usize,
    rest: std::slice::Iter<'w, Word>,
}

impl<'w> Values<'w> {
    fn next(&mut self) -> Result<&'w Word, WordError> {
        let problem = || "the format needs more values".to_owned();
        self.rest.next().ok_or_else(|| WordError { at: self.at, problem: problem() })
    }

    /// Reads the width or precision at the start of a text: digits, or `*`, which takes the next argument.
    fn read_size(&mut self, text: &mut &str) -> Result<Option<i64>, Stop> {
        if let Some(rest) = text.strip_prefix('*') {
            *text = rest;
            return whole_number(self.next()?).map(Some);
        }
        let length = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let digits;
        (digits, *text) = text.split_at(length);
        Ok((length > 0).then(|| digits.parse().unwrap_or(i64::MAX)))
    }
}

/// Executes Tcl's `format` (format(n)) with `%d`, `%f`, `%e`, `%g`, `%x`, `%s` and `%c`, including flags, width and
/// precision.
fn formatted(at: usize, form: &str, values: &[Word]) -> Outcome {
    let (mut text, mut rest, mut values) = (String::new(), form, Values { at, rest: values.iter() });
    while let Some(percent) = rest.find('%') {
        text.push_str(&rest[..percent]);
        rest = &rest[percent + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            (text, rest) = (text + "%", behind);
            continue;
        }
        let field;
        (field, rest) = field_of(at, rest, &mut values)?;
        text += &field.write(at, values.next()?)?;
        check_length(at, text.len())?;
    }
    Ok(text + rest)
}

/// Reads a field of a format string after its `%`.
fn field_of<'f>(at: usize, form: &'f str, values: &mut Values<'_>) -> Result<(Field, &'f str), Stop> {
    let (flags, mut rest) = form.split_at(form.find(|c| !"-0+ ".contains(c)).unwrap_or(form.len()));
    let mut flags = flags.to_owned();
    let width = values.read_size(&mut rest)?.unwrap_or(0);
    if width < 0 {
        flags.push('-');
    }
    let precision = match rest.strip_prefix('.') {
        Some(behind) => {
            rest = behind;
            values.read_size(&mut rest)?.or(Some(0))
        }
        None => None,
    };
    rest = rest.trim_start_matches('l');
    let kind = rest.chars().next().filter(|kind| "diuxXocfeEgGs".contains(*kind));
    let is_wide = |size: i64| size.unsigned_abs() > MAX_FIELD_WIDTH;
    let is_odd =
        flags.contains('-') && flags.contains('0') || is_wide(width) || precision.is_some_and(is_wide);
    let Some(kind) = kind.filter(|_| !is_odd) else {
        let problem = format!(
            "the format \"%{form}\" is not supported; use d, f, e, g, x, o, c or s, with flags -, 0 or +, width and precision up to {MAX_FIELD_WIDTH}"
        );
        return Err(Stop::Limit(WordError { at, problem }));
    };
    // A negative precision counts as none.
    let precision = precision.and_then(|precision| usize::try_from(precision).ok());
    Ok((Field { flags, width: width.unsigned_abs() as usize, precision, kind }, &rest[1..]))
}

impl Field {
    /// Formats a value according to the field.
    fn write(&self, at: usize, value: &Word) -> Outcome {
        let precision = self.precision.unwrap_or(6);
        let real = || Number::read(&value.text, value.at).map(Number::to_f64);
        let body = match self.kind {
            _ if value.text == MEASURED_VALUE => value.text.clone(),
            's' => value.text.chars().take(self.precision.unwrap_or(usize::MAX)).collect(),
            'c' => {
                let letter = u32::try_from(whole_number(value)?).ok().and_then(char::from_u32);
                let problem = || "%c needs the number of a character".to_owned();
                letter.map(String::from).ok_or_else(|| Stop::Limit(WordError { at, problem: problem() }))?
            }
            'd' | 'i' => whole_number(value)?.to_string(),
            'u' => (whole_number(value)? as u64).to_string(),
            'x' => format!("{:x}", whole_number(value)?),
            'X' => format!("{:X}", whole_number(value)?),
            'o' => format!("{:o}", whole_number(value)?),
            'f' => format!("{:.precision$}", real()?),
            'e' => format_scientific(real()?, precision),
            'E' => format_scientific(real()?, precision).to_uppercase(),
            'g' => format_general(real()?, precision),
            _ => format_general(real()?, precision).to_uppercase(),
        };
        Ok(self.padded(&body))
    }

    /// Pads a value to the width of the field, with its sign and leading zeros.
    fn padded(&self, body: &str) -> String {
        let has_sign = "difeEgG".contains(self.kind);
        let (sign, body) = match body.strip_prefix('-') {
            Some(body) if has_sign => ("-", body),
            _ if has_sign && self.flags.contains('+') => ("+", body),
            _ if has_sign && self.flags.contains(' ') => (" ", body),
            _ => ("", body),
        };
        let is_whole = "diuxXo".contains(self.kind);
        let min = self.precision.filter(|_| is_whole).unwrap_or(0);
        let body = "0".repeat(min.saturating_sub(body.len())) + body;
        let missing = self.width.saturating_sub(sign.len() + body.chars().count());
        if self.flags.contains('-') {
            format!("{sign}{body}{}", " ".repeat(missing))
        } else if self.flags.contains('0') && !(is_whole && self.precision.is_some()) {
            format!("{sign}{}{body}", "0".repeat(missing))
        } else {
            format!("{}{sign}{body}", " ".repeat(missing))
        }
    }
}
