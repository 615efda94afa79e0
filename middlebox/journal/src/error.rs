//! What can go wrong with a directory and the files in it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a journal cannot be opened, or cannot record.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process records there.
    #[error("{0}: another process records its rules there; stop it, or give this one a directory of its own")]
    Locked(PathBuf),
    /// Nothing was ever recorded there.
    #[error("{0}: no rules are recorded there; name the directory that a middlebox has for its state")]
    None(PathBuf),
    /// A file or directory cannot be opened, read or made.
    #[error("{path}: cannot {action}: {source}")]
    Io {
        /// What was to be done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A later version has written it.
    #[error("{path}: has format {version}, this program knows {known}; run the version that wrote it",
        known = crate::segment::VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        version: u8,
    },
    /// What is there is not what was written.
    #[error(
        "{path}: octet {offset}: {what}; what is recorded behind it is not to be trusted: restore the directory \
         from a copy, or move it away to begin without rules"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage begins, in octets from its start.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// There is no room. Nothing was recorded; the journal can be used when there is room again.
    #[error("{path}: nothing was recorded: {source}; make room on the disk")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why it could not grow.
        source: io::Error,
    },
    /// A write-back has failed, so nobody knows what is on the disk: it may be the changes, or not. The kernel reports
    /// this once, and a second fsync would succeed without having written anything, so there is no second one.
    #[error(
        "{path}: what is on the disk is unknown, since {why}; check the disk, then start anew to read what it holds"
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// What failed.
        why: String,
    },
}

impl JournalError {
    /// For `map_err`: what was to be done with which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// Octets at the end of the journal that were being written when the machine or the process stopped. Nobody was
/// promised what they say, and they have been cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub path: PathBuf,
    /// Where they began, in octets from its start.
    pub offset: u64,
    /// How many they were.
    pub octets: u64,
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, octets } = self;
        write!(
            f,
            "{}: cut off {octets} octets at {offset}: a batch half written, never promised",
            path.display()
        )
    }
}
