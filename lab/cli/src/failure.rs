//! Failures of commands.

use std::fmt::{self, Display};
use std::process::ExitCode;

use crate::terminal::note;
use hol_lab::{InputError, LabError};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The user made an error on the command line; the exit code is 2.
    Usage(String),
    /// The command failed while it ran; the exit code is 1.
    Failed(String),
}

impl Failure {
    /// Creates a failure that is not an error in the command line.
    pub fn failed(problem: impl Display) -> Self {
        Self::Failed(problem.to_string())
    }

    /// Prints the failure, and returns the exit code.
    pub fn report(self) -> ExitCode {
        note!("error: {self}");
        ExitCode::from(if let Self::Usage(_) = self { 2 } else { 1 })
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(problem) | Self::Failed(problem)) = self;
        f.write_str(problem)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        if error.is_usage_error() { Self::Usage(error.to_string()) } else { Self::failed(error) }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::Usage(error.to_string())
    }
}
