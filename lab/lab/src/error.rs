//! Errors outside the simulation: invalid input, files, and worlds that cannot run.

use std::io;
use std::path::{Path, PathBuf};

use hol_scenario::RunError;

use crate::worlds::WorldName;

/// An error in the user's input: where it is, what is wrong, and how to correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct InputError {
    /// The place of the error: `file:line:column`, or a command-line option.
    pub place: String,
    /// The problem, and the remedy.
    pub problem: String,
}

/// Why an experiment could not be read, run or stored.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The experiment is invalid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file could not be read or written.
    #[error("{}: cannot {action}: {source}; {cure}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The failed action, such as "read" or "write".
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
        /// The remedy.
        cure: &'static str,
    },
    /// A file of a result directory is damaged.
    #[error("{}:{line}: {problem}", path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The number of the damaged line, counted from 1.
        line: usize,
        /// The problem, and the remedy.
        problem: String,
    },
    /// The directory cannot be used as a result directory.
    #[error("{}: {problem}", path.display())]
    Directory {
        /// The result directory.
        path: PathBuf,
        /// The reason why the directory cannot be used, and the remedy.
        problem: String,
    },
    /// The world does not support a scenario.
    #[error("{point}: {problem}")]
    Scenario {
        /// A description of the point of the run.
        point: String,
        /// The error message of the world.
        problem: String,
    },
    /// Runs of the world cannot be repeated exactly, because the world uses a real clock.
    #[error(
        "runs in world {0} use a real clock and cannot be repeated exactly, so they cannot be verified; run the experiment again and \
        compare the confidence intervals, or use --world model"
    )]
    NotRepeatable(WorldName),
    /// The world cannot run any scenario on this machine.
    #[error(transparent)]
    World(#[from] RunError),
    /// All of the first runs failed; contains their number and the first error.
    #[error("all of the first {0} runs failed, so no more were started; the last error: {1}")]
    AllFailed(u64, String),
    /// An assertion of hol failed in a run; a message before this error shows which assertion.
    #[error(
        "{point}: repetition {repetition} (seed {seed}) failed an assertion, which is a bug of hol; please report it with this message"
    )]
    AssertionFailed {
        /// A description of the point.
        point: String,
        /// The index of the repetition, from 0.
        repetition: u32,
        /// The seed of the run.
        seed: u64,
    },
}

impl LabError {
    /// Returns whether the user has to change the input; otherwise something on this machine causes the error.
    pub const fn is_usage_error(&self) -> bool {
        matches!(
            self,
            Self::World(RunError::Refused(_))
                | Self::Input(_)
                | Self::Scenario { .. }
                | Self::NotRepeatable(_)
        )
    }

    /// Creates the error of a file that could not be read or written (`action`), with advice on what to do.
    pub fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        let cure = match source.kind() {
            io::ErrorKind::NotFound => "check the name, or create it first",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "change its permissions, or choose another directory with --out"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space and run the same command again: finished runs are kept"
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                "another file has this name; choose another directory with --out"
            }
            io::ErrorKind::IsADirectory => "name a file in it",
            io::ErrorKind::InvalidData => "save it as UTF-8 text",
            _ => "check the disk, then run the same command again",
        };
        Self::File { path: path.to_owned(), action, source, cure }
    }
}
