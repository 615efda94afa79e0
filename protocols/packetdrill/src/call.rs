//! A system call of a script: `write(4, ..., 1000) = 1000`.

use crate::words::{Words, number};

/// What the application calls, and what has to come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) result: Outcome,
}

/// A result, and the name of the error if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) value: i64,
    pub(crate) error: String,
}

impl Outcome {
    pub(crate) fn value(value: usize) -> Self {
        Self { value: value as i64, error: String::new() }
    }

    pub(crate) fn error(name: &str) -> Self {
        Self { value: -1, error: name.to_owned() }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.value, if self.error.is_empty() { "" } else { " " }, self.error)
    }
}

impl Call {
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let (head, tail) = line.rsplit_once('=').ok_or_else(|| {
            format!("{line:?} says nothing of its result; write it behind \"=\", as in \"listen(3, 1) = 0\"")
        })?;
        let call = head.trim().strip_suffix(')').and_then(|call| call.split_once('('));
        let (name, arguments) = call.ok_or_else(|| {
            format!("{line:?} is no step; write a packet (< or >), a call such as \"close(4) = 0\", or %{{ assert … }}%")
        })?;
        let mut result = Words::new(tail);
        let value = number("the result of a call", result.next())?;
        let result = Outcome { value, error: result.next().to_owned() };
        Ok(Self { name: name.trim().to_owned(), arguments: split(arguments), result })
    }

    /// The argument at `index`.
    pub(crate) fn argument(&self, index: usize) -> Result<&str, String> {
        let argument = self.arguments.get(index).map(String::as_str);
        argument.ok_or_else(|| format!("{}() lacks its argument {}", self.name, index + 1))
    }

    /// The argument at `index`, a number.
    pub(crate) fn count(&self, index: usize) -> Result<usize, String> {
        number(&format!("argument {} of {}()", index + 1, self.name), self.argument(index)?)
    }
}

/// Arguments are separated by commas outside of braces.
fn split(arguments: &str) -> Vec<String> {
    let mut depth = 0;
    let parts = arguments.split(|c| {
        depth += i32::from(matches!(c, '{' | '[' | '(')) - i32::from(matches!(c, '}' | ']' | ')'));
        c == ',' && depth == 0
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_arguments_and_a_result() {
        let call = Call::parse("read(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)").unwrap();
        assert_eq!((call.name.as_str(), call.count(2)), ("read", Ok(1000)));
        assert_eq!(call.result, Outcome::error("EAGAIN"));
        let call = Call::parse("setsockopt(4, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0").unwrap();
        assert_eq!((call.argument(3), &call.result), (Ok("{onoff=1, linger=0}"), &Outcome::value(0)));
        assert!(Call::parse("close(4)").unwrap_err().contains("result"));
        assert!(Call::parse("hello = 0").unwrap_err().contains("no step"));
    }
}
