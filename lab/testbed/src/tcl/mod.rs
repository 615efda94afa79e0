//! The subset of Tcl used by scripts that describe networks: substitution, variables and arrays, expressions,
//! loops, procedures, lists, text. Anything else is rejected with line and word.

mod arrays;
mod commands;
mod control;
mod expression;
mod interpreter;
mod list;
mod number;
mod parse;
mod strings;
mod variables;

pub(crate) use commands::COMMANDS;
pub(crate) use interpreter::{Host, Interpreter};
pub(crate) use list::elements;
pub(crate) use number::MEASURED;

/// An error about a word, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// Offset of the word in the script, in octets.
    pub at: usize,
    pub problem: String,
}

pub(crate) fn complain<T>(at: usize, problem: impl Into<String>) -> Result<T, Complaint> {
    Err(Complaint { at, problem: problem.into() })
}

/// A word after substitution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// Where it begins in the script.
    pub at: usize,
    /// Where its text stands in the script letter by letter, if it does: in braces.
    pub verbatim: Option<usize>,
}

impl Word {
    /// Returns the word as a script, which remembers where it stands.
    pub fn script(&self) -> Text<'_> {
        match self.verbatim {
            Some(base) => Text { text: &self.text, base, exact: true },
            None => Text { text: &self.text, base: self.at, exact: false },
        }
    }
}

/// Text to be parsed, and where it stands in the script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'t> {
    pub text: &'t str,
    base: usize,
    /// False for text that was put together: all of it stands at `base`.
    exact: bool,
}

impl<'t> Text<'t> {
    /// A whole script.
    pub fn whole(text: &'t str) -> Self {
        Self { text, base: 0, exact: true }
    }

    /// The text of a file that begins at `base`.
    pub fn at(text: &'t str, base: usize) -> Self {
        Self { text, base, exact: true }
    }

    /// Where octet `offset` of the text stands in the script.
    pub fn place(self, offset: usize) -> usize {
        if self.exact { self.base + offset } else { self.base }
    }
}
