//! A system call of a script: `write(4, ..., 1000) = 1000`.

use crate::tokens::{Tokens, integer, number, split};

/// A system call of the application, and its expected result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) result: Expectation,
}

/// The expected result of a call. `...` accepts any result; an error without a name accepts any error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) value: Option<i64>,
    error: Option<String>,
}

/// The result of a call and, if it failed, the name of its error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The value that the call returns (-1 for an error).
    pub(crate) value: i64,
    pub(crate) error: String,
}

impl Outcome {
    /// Creates the outcome of a call that returned `value`.
    pub(crate) fn value(value: usize) -> Self {
        Self { value: value as i64, error: String::new() }
    }

    /// Creates the outcome of a call that failed.
    pub(crate) fn error(name: &str) -> Self {
        Self { value: -1, error: name.to_owned() }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.value, if self.error.is_empty() { "" } else { " " }, self.error)
    }
}

impl Expectation {
    /// Parses an expected result: `0`, `0x2 (flags O_RDWR)`, `...` or `-1 EAGAIN (Resource temporarily
    /// unavailable)`.
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = Tokens::new(text);
        let value = words.next();
        if value == "..." {
            return Ok(Self { value: None, error: None });
        }
        let value = integer(value).map_or_else(|| number("the result of a call", value), Ok)?;
        let error = match words.next() {
            // Another name for the same error number.
            "EWOULDBLOCK" => "EAGAIN",
            error => error,
        };
        let is_named = error.starts_with(|c: char| c.is_ascii_uppercase());
        Ok(Self { value: Some(value), error: is_named.then(|| error.to_owned()) })
    }

    /// Returns whether `outcome` matches the expected result.
    pub(crate) fn admits(&self, outcome: &Outcome) -> bool {
        let error_fits = self.error.as_ref().is_none_or(|error| *error == outcome.error);
        self.value.is_none_or(|value| value == outcome.value) && error_fits
    }

    /// Returns the name of the expected error; `None` if no error with a name is expected.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

impl std::fmt::Display for Expectation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(value) = self.value else { return f.write_str("...") };
        let error = self.error.as_ref().map_or(String::new(), |error| format!(" {error}"));
        write!(f, "{value}{error}")
    }
}

impl Call {
    /// Parses a line with a call; the error message shows the expected syntax.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let (name, rest) = line.split_once('(').ok_or_else(|| {
            format!("{line:?} is not a step; write a packet (< or >), a call such as \"close(4) = 0\", or %{{ assert … }}%")
        })?;
        let name = name.trim();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("{name:?} is not the name of a call; write a call such as \"close(4) = 0\""));
        }
        let end =
            closing(rest).ok_or_else(|| format!("{line:?} has no \")\"; write one after the arguments"))?;
        let result = rest[end + 1..].trim_start().strip_prefix('=').ok_or_else(|| {
            format!("{line:?} states no result; write it after \"=\", as in \"listen(3, 1) = 0\"")
        })?;
        Ok(Self {
            name: name.to_owned(),
            arguments: split_arguments(&rest[..end]),
            result: Expectation::parse(result)?,
        })
    }

    /// Returns the argument of the call at `index`.
    pub(crate) fn argument(&self, index: usize) -> Result<&str, String> {
        let argument = self.arguments.get(index).map(String::as_str);
        argument.ok_or_else(|| format!("argument {} of {}() is missing", index + 1, self.name))
    }

    /// Returns the argument of the call at `index` as a number.
    pub(crate) fn count(&self, index: usize) -> Result<usize, String> {
        let text = self.argument(index)?;
        let value = integer(text).and_then(|value| usize::try_from(value).ok());
        value.map_or_else(|| number(&format!("argument {} of {}()", index + 1, self.name), text), Ok)
    }

    /// Returns the flags in the argument at `index`, such as `MSG_PEEK|MSG_DONTWAIT`; empty for 0 or a
    /// missing argument.
    pub(crate) fn flags(&self, index: usize) -> Vec<&str> {
        let text = self.arguments.get(index).map_or("0", String::as_str);
        text.split('|').map(str::trim).filter(|flag| integer(flag) != Some(0)).collect()
    }
}

/// Returns the position in `text` of the bracket that closes a bracket just before `text`.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted) = (0, false);
    text.char_indices().find_map(|(at, c)| {
        quoted ^= c == '"';
        if quoted {
            return None;
        }
        depth += i64::from(matches!(c, '{' | '[' | '(')) - i64::from(matches!(c, '}' | ']' | ')'));
        (depth < 0).then_some(at)
    })
}

/// Splits the arguments of a call at the commas outside of brackets.
fn split_arguments(text: &str) -> Vec<String> {
    split(text, ',').into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_arguments_and_a_result() {
        let call = Call::parse("read(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)").unwrap();
        assert_eq!((call.name.as_str(), call.count(2)), ("read", Ok(1000)));
        assert!(
            call.result.admits(&Outcome::error("EAGAIN")) && !call.result.admits(&Outcome::error("EPIPE"))
        );
        let call = Call::parse("setsockopt(4, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0").unwrap();
        assert_eq!(call.argument(3), Ok("{onoff=1, linger=0}"));
        assert!(call.result.admits(&Outcome::value(0)) && !call.result.admits(&Outcome::value(1)));
        assert!(Call::parse("close(4)").unwrap_err().contains("result"));
        assert!(Call::parse("hello = 0").unwrap_err().contains("is not a step"));
        assert!(Call::parse("f(1 = 0").unwrap_err().contains("write one after the arguments"));
    }

    #[test]
    fn result_is_a_number_in_any_base_or_three_dots() {
        let result = |text: &str| Call::parse(&format!("f() = {text}")).unwrap().result;
        assert_eq!(result("0x802 (flags O_RDWR|O_NONBLOCK)").value, Some(0x802));
        assert_eq!(result("0x2 (flags O_RDWR)").error(), None);
        assert!(result("...").admits(&Outcome::error("EPIPE")));
        assert!(result("-1").admits(&Outcome::error("EPIPE")) && !result("-1").admits(&Outcome::value(0)));
        assert_eq!(
            Call::parse("send(4, ..., 5, MSG_PEEK | MSG_EOR) = 5").unwrap().flags(3),
            ["MSG_PEEK", "MSG_EOR"]
        );
        assert!(Call::parse("send(4, ..., 5, 0) = 5").unwrap().flags(3).is_empty());
    }
}
