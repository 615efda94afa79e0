//! Errors of a journal.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a journal cannot be opened, or cannot record.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process uses it.
    #[error("{0}: another process records its rules there; stop it, or give this one a directory of its own")]
    Locked(PathBuf),
    /// There is no journal.
    #[error("{0}: no rules are recorded there; name the directory that a middlebox has for its state")]
    None(PathBuf),
    /// A file or directory cannot be opened, read or created.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A newer version wrote it.
    #[error("{path}: has format {version}, this program knows {known}; run the version that wrote it",
        known = crate::segment::VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: u8,
    },
    /// The content is not what was written.
    #[error(
        "{path}: octet {offset}: {what}; what is recorded behind it is not to be trusted: restore the directory \
         from a copy, or move it away to begin without rules"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage starts, in octets from the start.
        offset: u64,
        /// The problem.
        what: &'static str,
    },
    /// The end of the journal is missing: there are fewer acknowledged records than its mark counts.
    #[error(
        "{path}: octet {offset}: {what}; restore the directory from a copy, or remove {mark} to go on without them (a copy that was \
         made while a middlebox recorded there lacks the end if its mark was copied last)"
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// Where the records are missing, in octets from the start.
        offset: u64,
        /// The problem.
        what: &'static str,
        /// The file of the mark.
        mark: PathBuf,
    },
    /// A copy was sent something else than entries.
    #[error(
        "the other middlebox has sent something that is no record: both need the same version of this program; the copy is unchanged"
    )]
    Unreadable,
    /// There is no room. Nothing was recorded; the journal is usable again when there is room.
    #[error("{path}: nothing was recorded: {source}; make room on the disk")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why it could not grow.
        source: io::Error,
    },
    /// A write-back has failed, so it is unknown whether the changes are on the disk. The kernel reports this
    /// once, and a second fsync would succeed without having written anything, so there is none.
    #[error(
        "{path}: what is on the disk is unknown, since {why}; check the disk, then start anew to read what it holds"
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// The failure.
        why: String,
    },
}

impl JournalError {
    /// For `map_err`: the attempted action and the file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// Octets at the end of the journal that were being written when the machine or the process stopped, and have been
/// cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruncatedTail {
    /// Path of the journal.
    pub path: PathBuf,
    /// Offset in the file of the first octet that was cut off.
    pub offset: u64,
    /// Number of octets that were cut off.
    pub octets: u64,
    /// True if the journal's mark says that they were never acknowledged.
    pub is_unacknowledged: bool,
}

impl fmt::Display for TruncatedTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, octets, is_unacknowledged } = self;
        let promise = if *is_unacknowledged {
            "never acknowledged"
        } else {
            "which may have been acknowledged: there was no mark, or `sync` was off"
        };
        write!(f, "{}: cut off {octets} octets at {offset}: an incomplete batch, {promise}", path.display())
    }
}
