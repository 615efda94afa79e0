//! What is wrong: with a script, or with an endpoint that does not keep to it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Characters of a problem, which may quote a line of any length.
const LONGEST: usize = 2000;

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// The script's: it cannot be read, or says what this player does not know.
    #[default]
    Script,
    /// The endpoint's: it does something else.
    Endpoint,
}

/// The file, the line, the stack, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlayError {
    fault: Fault,
    file: PathBuf,
    line: usize,
    stack: String,
    problem: String,
}

impl PlayError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        let problem: String = problem.into();
        let count = problem.chars().count();
        let problem = if count > LONGEST {
            let begin: String = problem.chars().take(LONGEST / 2).collect();
            let end: String = problem.chars().skip(count - LONGEST / 2).collect();
            format!("{begin}…{end}")
        } else {
            problem
        };
        Self { problem, ..Self::default() }
    }

    /// The endpoint does something else than the script says.
    pub(crate) fn departs(problem: impl Into<String>) -> Self {
        Self { fault: Fault::Endpoint, ..Self::new(problem) }
    }

    /// The endpoint panics.
    pub fn panics() -> Self {
        Self::departs("the endpoint panics; what it says stands above")
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// The line of the script, counted from 1; 0 for the script as a whole.
    pub fn line(&self) -> usize {
        self.line
    }

    /// What is wrong there.
    pub fn problem(&self) -> &str {
        &self.problem
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
