//! What can go wrong outside the simulation: what the user wrote, and the disk.

use std::io;
use std::path::{Path, PathBuf};

use hol_scenario::RunError;

use crate::worlds::WorldName;

/// Something the user wrote is wrong: where, what, and the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct InputError {
    /// `file:line:column`, or the command-line option.
    pub place: String,
    /// What is wrong; what to do.
    pub problem: String,
}

/// Why an experiment could not be read, run or stored.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The experiment is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file could not be read or written.
    #[error("{}: cannot {action}: {source}; {cure}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What was tried: "read", "write".
        action: &'static str,
        /// What the system answered.
        source: io::Error,
        /// What to do.
        cure: &'static str,
    },
    /// A file of a result directory does not hold what it should.
    #[error("{}:{line}: {problem}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it; what to do.
        problem: String,
    },
    /// The result directory cannot be used for this.
    #[error("{}: {problem}", path.display())]
    Directory {
        /// The result directory.
        path: PathBuf,
        /// Why not; what to do.
        problem: String,
    },
    /// A scenario that the world refuses.
    #[error("{point}: {problem}")]
    Scenario {
        /// The point in words.
        point: String,
        /// What the world says.
        problem: String,
    },
    /// A world in which no run is like another.
    #[error(
        "world {0} has a real clock and whatever else goes on there, so no run of it is like another and there is nothing to verify; \
         run the experiment again and compare the intervals, or take --world model"
    )]
    NotRepeatable(WorldName),
    /// A world cannot run anything.
    #[error(transparent)]
    World(#[from] RunError),
    /// The first runs failed, every one of them.
    #[error("the first {0} runs all failed, the last: {1}")]
    Hopeless(u64, String),
    /// One of our own assertions failed in a run; the message above says which.
    #[error(
        "{point}: repetition {repetition} (seed {seed}) broke an assertion; please report it with these words"
    )]
    Broken {
        /// The point in words.
        point: String,
        /// Which repetition.
        repetition: u32,
        /// The seed of the run.
        seed: u64,
    },
}

impl LabError {
    /// The user has to change what he wrote, rather than the machine its state.
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::World(RunError::Refused(_))
                | Self::Input(_)
                | Self::Scenario { .. }
                | Self::NotRepeatable(_)
        )
    }

    /// A file that could not be read or written (`action`), with the cure.
    pub fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        let cure = match source.kind() {
            io::ErrorKind::NotFound => "check the name, or create it first",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "change its permissions, or choose another place with --out"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space and run the same command again: finished runs are kept"
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                "something else has this name; choose another place with --out"
            }
            io::ErrorKind::IsADirectory => "name a file in it",
            io::ErrorKind::InvalidData => "save it as UTF-8 text",
            _ => "check the disk, then run the same command again",
        };
        Self::File { path: path.to_owned(), action, source, cure }
    }
}
