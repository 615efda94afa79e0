//! Runs that failed. The sweep continues without them, and the next sweep repeats them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::point::RunKey;

/// A run that failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FailedRun {
    /// Point and repetition of the run.
    #[serde(flatten)]
    pub key: RunKey,
    /// Description of the point to which the run belongs.
    pub name: String,
    /// What failed, and the remedy.
    pub failed: String,
    /// Output of the virtual machine of the run, which is stored in a separate file and not in the journal.
    #[serde(skip)]
    pub log: String,
}

impl FailedRun {
    /// Returns the name of the run's log file in the result directory.
    pub fn log_file(key: RunKey) -> String {
        format!("failed/{}-{}.log", key.point, key.repetition)
    }
}

impl fmt::Display for FailedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, repetition {}: {}", self.name, self.key.repetition, self.failed)
    }
}
