//! Failures of commands, and their exit codes.

use std::fmt::{self, Display};
use std::process::ExitCode;

use hol_terminal::note;

/// Why a command failed, which determines the exit code.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong; exit code 2.
    Usage(String),
    /// The command failed; exit code 1.
    Failed(String),
    /// No session with a middlebox could be opened, or the session broke; exit code 3.
    NoSession(String),
}

impl Failure {
    /// Returns a failure with exit code 1.
    pub(crate) fn failed(problem: impl Display) -> Self {
        Self::Failed(problem.to_string())
    }

    /// Prints the failure, and returns the exit code.
    pub fn report(self) -> ExitCode {
        note!("error: {self}");
        ExitCode::from(match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::NoSession(_) => 3,
        })
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(problem) | Self::Failed(problem) | Self::NoSession(problem)) = self;
        f.write_str(problem)
    }
}
