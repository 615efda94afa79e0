//! Splits lines into words, and parses numbers.

use std::str::FromStr;

/// A line of a script, or the part of it that has not been parsed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    pub(crate) fn new(line: &'a str) -> Self {
        Self(line.trim())
    }

    /// Returns the part of the line that has not been parsed.
    pub(crate) fn rest(self) -> &'a str {
        self.0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns the next word; empty at the end.
    pub(crate) fn next(&mut self) -> &'a str {
        let (word, rest) = self.0.split_once(char::is_whitespace).unwrap_or((self.0, ""));
        self.0 = rest.trim_start();
        word
    }

    /// Removes `prefix` if the text starts with it; returns whether it does.
    pub(crate) fn take(&mut self, prefix: &str) -> bool {
        let rest = self.0.strip_prefix(prefix);
        self.0 = rest.map_or(self.0, str::trim_start);
        rest.is_some()
    }

    /// Removes and returns the text before `end`, and removes `end`.
    pub(crate) fn until(&mut self, end: &str) -> Result<&'a str, String> {
        let cut = self.0.split_once(end);
        let (before, rest) = cut.ok_or_else(|| format!("{:?} has no {end:?}; write one after it", self.0))?;
        self.0 = rest.trim_start();
        Ok(before.trim())
    }
}

/// Parses `text` as a number; the error message calls it `what`.
pub(crate) fn number<T: FromStr>(what: &str, text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("{what} is {text:?}; write a number"))
}

/// Parses a decimal or hexadecimal integer, also in packetdrill's notations `htonl(1)` and `[1]`.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let inner = ["htonl(", "htons("].iter().find_map(|call| text.strip_prefix(call)?.strip_suffix(')'));
    let inner = inner.or_else(|| text.strip_prefix('[')?.strip_suffix(']')).unwrap_or(text).trim();
    match inner.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => inner.parse().ok(),
    }
}

/// Splits `text` at separators outside of brackets and quotes.
pub(crate) fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut quoted) = (0, false);
    let parts = text.split(|c| {
        quoted ^= c == '"';
        depth += i64::from(matches!(c, '{' | '[' | '(')) - i64::from(matches!(c, '}' | ']' | ')'));
        c == separator && depth == 0 && !quoted
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}
