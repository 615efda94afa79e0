//! How a command ends when it does not end well.

use std::fmt::Display;
use std::process::ExitCode;

use hol_lab::{InputError, LabError};

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The user has to change what he wrote: exit code 2.
    Usage(String),
    /// It did not work: exit code 1.
    Failed(String),
}

impl Failure {
    /// A failure that is no fault of the command line.
    pub fn failed(problem: impl Display) -> Self {
        Self::Failed(problem.to_string())
    }

    /// Says it, and gives the exit code.
    pub fn report(self) -> ExitCode {
        let (problem, code) = match self {
            Self::Usage(problem) => (problem, 2),
            Self::Failed(problem) => (problem, 1),
        };
        eprintln!("error: {problem}");
        ExitCode::from(code)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        if error.is_usage() { Self::Usage(error.to_string()) } else { Self::failed(error) }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::Usage(error.to_string())
    }
}
