//! The subset of Tcl used by scripts that describe networks: substitution, variables and arrays, expressions,
//! loops, procedures, lists, text; and the classes of OTcl. Anything else is rejected with line and word.

use hol_base::nearest_word;

mod arrays;
mod budget;
mod commands;
mod control;
mod expression;
mod interpreter;
mod list;
mod number;
mod objects;
mod parse;
mod pattern;
mod regexp;
mod search;
mod strings;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use commands::COMMANDS;
pub(crate) use interpreter::{Interpreter, ScriptHost};
pub(crate) use list::list_of;
pub(crate) use number::{MEASURED_VALUE, format_general, format_scientific};

/// An error about a word, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordError {
    /// Offset of the word in the script, in octets.
    pub at: usize,
    pub problem: String,
}

/// Creates an error about a word.
pub(crate) fn error_at<T>(at: usize, problem: impl Into<String>) -> Result<T, WordError> {
    Err(WordError { at, problem: problem.into() })
}

/// Maximum number of names that are compared with an unknown one, and the maximum length of a compared name in octets.
const COMPARISON_LIMITS: (usize, usize) = (200, 64);

/// Returns the known name that is most similar to an unknown one.
pub(crate) fn suggestion<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let (max, longest) = COMPARISON_LIMITS;
    let known = known.into_iter().take(max).filter(|known| known.len().max(name.len()) <= longest);
    nearest_word(name, known)
}

/// A word after substitution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// Offset of the word in the script.
    pub at: usize,
    /// Offset of the word's text in the script if it is there literally, in braces.
    pub verbatim: Option<usize>,
}

impl Word {
    /// Returns the word as a script, with its position.
    pub fn script(&self) -> Text<'_> {
        match self.verbatim {
            Some(base) => Text { text: &self.text, base, exact: true },
            None => Text { text: &self.text, base: self.at, exact: false },
        }
    }
}

/// Text to be parsed, with its position in the script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'t> {
    pub text: &'t str,
    base: usize,
    /// Whether octet n of the text is at `base` + n in the script; false for composed text, all of which is considered to be at `base`.
    exact: bool,
}

impl<'t> Text<'t> {
    /// Returns a whole script as text.
    pub fn whole(text: &'t str) -> Self {
        Self { text, base: 0, exact: true }
    }

    /// Returns the text of a file that begins at `base`.
    pub fn at(text: &'t str, base: usize) -> Self {
        Self { text, base, exact: true }
    }

    /// Returns the position in the script of octet `offset` of the text.
    pub fn script_position(self, offset: usize) -> usize {
        if self.exact { self.base + offset } else { self.base }
    }
}
