//! How a command ends when it does not end well.

use std::fmt::{self, Display};
use std::process::ExitCode;

use hol_terminal::note;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The user has to change what he wrote: exit code 2.
    Usage(String),
    /// It did not work: exit code 1.
    Failed(String),
    /// There is no session with the middlebox that could do it: exit code 3.
    NoSession(String),
}

impl Failure {
    /// A failure that is no fault of the command line.
    pub(crate) fn failed(problem: impl Display) -> Self {
        Self::Failed(problem.to_string())
    }

    /// Says it, and gives the exit code.
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
