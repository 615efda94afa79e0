//! Errors of a journal.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a journal cannot be opened, or changes cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process uses the journal.
    #[error("{0}: another process records its rules in this directory; stop it, or use another directory")]
    Locked(PathBuf),
    /// There is no journal in the directory.
    #[error("{0}: the directory contains no journal; give the `state` directory of a middlebox")]
    NotFound(PathBuf),
    /// A file or directory cannot be opened, read or created.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file was written by a newer version of the program.
    #[error("{path}: the file has format {version}, but this program supports {known}; run the version of simcod that wrote it",
        known = crate::segment::VERSION)]
    Version {
        /// The file of a newer version.
        path: PathBuf,
        /// The format version of the file.
        version: u8,
    },
    /// The content of a file differs from the octets that were written.
    #[error(
        "{path}: octet {offset}: {problem}; later records are unreliable: restore the directory from a copy, or \
         move it away to start without rules"
    )]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// Offset at which the damage starts, in octets.
        offset: u64,
        /// How the damage shows.
        problem: &'static str,
    },
    /// The end of the journal is missing: the high-water mark says that more records were acknowledged than the journal
    /// contains.
    #[error(
        "{path}: octet {offset}: {problem}; restore the directory from a copy, or remove {mark} to continue without the lost \
         records. In a copy made while the middlebox was running, the last records are missing if {mark} was copied after them"
    )]
    Missing {
        /// The file whose end is missing.
        path: PathBuf,
        /// Offset at which records are missing, in octets.
        offset: u64,
        /// How the loss shows.
        problem: &'static str,
        /// The file of the high-water mark.
        mark: PathBuf,
    },
    /// The other middlebox sent data that are not an entry.
    #[error(
        "the other middlebox sent data that is not a record; install the same version of simcod on both. The copy is unchanged"
    )]
    Unreadable,
    /// The file cannot grow. Nothing was recorded; the next attempt can succeed once there is space.
    #[error("{path}: no change was recorded: {source}; free space on the disk")]
    Refused {
        /// The file that cannot grow.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Writing back to the disk failed, so it is unknown whether the changes are on the disk. The kernel reports this
    /// only once: a second fsync would succeed without writing anything, so the journal does not repeat it.
    #[error(
        "{path}: it is unknown whether the last changes are on the disk because {reason}; check the disk, then restart the middlebox, which reads the journal again"
    )]
    Broken {
        /// The file that was being written.
        path: PathBuf,
        /// The description of the failure.
        reason: String,
    },
}

impl JournalError {
    /// Returns a function for `map_err` that adds the failed action and the file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// Returns true if the error is caused by a lack of space on the disk.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } | Self::Refused { source, .. } if is_disk_full(source))
    }

    /// Converts the error that occurred when a new segment was begun: nothing was recorded.
    pub(crate) fn into_refused(self) -> Self {
        match self {
            Self::Io { path, source, .. } => Self::Refused { path, source },
            other => other,
        }
    }
}

/// Returns true if a file cannot grow, because the disk, a quota or a limit of the process is exhausted.
pub fn is_disk_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// An incomplete frame at the end of the journal, which was cut off. It was being written when the machine or the
/// process stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruncatedTail {
    /// Path of the journal.
    pub path: PathBuf,
    /// Offset of the first octet that was cut off.
    pub offset: u64,
    /// Number of octets that were cut off.
    pub octets: u64,
    /// Whether the high-water mark proves that the octets were never acknowledged.
    pub is_unacknowledged: bool,
}

impl fmt::Display for TruncatedTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, octets, is_unacknowledged } = self;
        let promise = if *is_unacknowledged {
            "which was never acknowledged"
        } else {
            "which may have been acknowledged: there was no mark, or `sync` was off"
        };
        write!(f, "{}: removed an incomplete batch of {octets} octets at {offset}, {promise}", path.display())
    }
}
