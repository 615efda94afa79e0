//! Errors of playing a script: the script is invalid, or the endpoint deviates from it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Maximum number of characters of an error message. Messages quote lines of the script, which may
/// have any length.
const MAX_MESSAGE: usize = 2000;

/// What caused an error: the script or the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorOrigin {
    /// The script is invalid, or uses a feature that this player does not support.
    #[default]
    Script,
    /// The endpoint deviates from the script.
    Endpoint,
}

/// An error, with the script file, the line and the stack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlayError {
    origin: ErrorOrigin,
    file: PathBuf,
    line: usize,
    stack: String,
    problem: String,
}

impl PlayError {
    /// Creates the error of an invalid script.
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        let problem: String = problem.into();
        let count = problem.chars().count();
        let problem = if count > MAX_MESSAGE {
            let begin: String = problem.chars().take(MAX_MESSAGE / 2).collect();
            let end: String = problem.chars().skip(count - MAX_MESSAGE / 2).collect();
            format!("{begin}…{end}")
        } else {
            problem
        };
        Self { problem, ..Self::default() }
    }

    /// Creates the error of an endpoint that deviates from the script.
    pub(crate) fn deviation(problem: impl Into<String>) -> Self {
        Self { origin: ErrorOrigin::Endpoint, ..Self::new(problem) }
    }

    /// Creates the error for an endpoint that panicked.
    pub fn endpoint_panic() -> Self {
        Self::deviation("the endpoint panicked; its message is above")
    }

    /// Returns the cause of the error.
    pub fn origin(&self) -> ErrorOrigin {
        self.origin
    }

    /// Returns the line number in the script, from 1; 0 if the error concerns the script as a
    /// whole.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the message of the error.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// Adds the line number in the script to the error.
    pub(crate) fn at_line(self, line: usize) -> Self {
        Self { line, ..self }
    }

    /// Adds the name of the stack that played the script to the error.
    pub(crate) fn with_stack(self, stack: impl Into<String>) -> Self {
        Self { stack: stack.into(), ..self }
    }

    /// Adds the path of the script to the error.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        Self { file: file.to_owned(), ..self }
    }
}

impl From<String> for PlayError {
    fn from(problem: String) -> Self {
        Self::new(problem)
    }
}

impl fmt::Display for PlayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, stack, problem, .. } = self;
        write!(f, "{}:{line}: ", file.display())?;
        if !stack.is_empty() {
            write!(f, "with {stack}: ")?;
        }
        f.write_str(problem)
    }
}

impl std::error::Error for PlayError {}
