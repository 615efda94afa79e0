//! A run that did not come to its end. The sweep goes on without it; the next one tries it again.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::point::RunKey;

/// A run that failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FailedRun {
    /// Which run.
    #[serde(flatten)]
    pub key: RunKey,
    /// Its point, in words.
    pub name: String,
    /// What happened, with the cure.
    pub failed: String,
    /// All that its machine had to say; it goes into a file of its own, not into the journal.
    #[serde(skip)]
    pub log: String,
}

impl FailedRun {
    /// The name of its log in the result directory.
    pub fn log_file(key: RunKey) -> String {
        format!("failed/{}-{}.log", key.point, key.repetition)
    }
}

impl fmt::Display for FailedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, repetition {}: {}", self.name, self.key.repetition, self.failed)
    }
}
