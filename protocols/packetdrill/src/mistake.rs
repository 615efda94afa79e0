//! What is wrong: with a script, or with an endpoint that does not keep to it.

use std::fmt;
use std::path::{Path, PathBuf};

/// The file, the line, the stack, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mistake {
    file: PathBuf,
    line: usize,
    stack: String,
    problem: String,
}

impl Mistake {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), ..Self::default() }
    }

    /// The mistake is in this line.
    pub(crate) fn at(self, line: usize) -> Self {
        Self { line, ..self }
    }

    /// The script was played with this stack.
    pub(crate) fn with(self, stack: impl Into<String>) -> Self {
        Self { stack: stack.into(), ..self }
    }

    /// The script is in this file.
    pub(crate) fn of(self, file: &Path) -> Self {
        Self { file: file.to_owned(), ..self }
    }
}

impl From<String> for Mistake {
    fn from(problem: String) -> Self {
        Self::new(problem)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, stack, problem } = self;
        write!(f, "{}:{line}: ", file.display())?;
        if !stack.is_empty() {
            write!(f, "with {stack}: ")?;
        }
        f.write_str(problem)
    }
}

impl std::error::Error for Mistake {}
