//! A run that did not come to its end. The sweep goes on without it; the next one tries it again.

use std::fmt;

use hol_kernel::KernelError;
use serde::{Deserialize, Serialize};

use crate::plan::Job;
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
    /// What the guest wrote to its console; it goes into the log, not into the journal.
    #[serde(skip)]
    pub console: String,
}

impl FailedRun {
    pub(crate) fn new(job: Job<'_>, problem: &KernelError) -> Self {
        let (name, console) = (job.point.to_string(), problem.console().to_owned());
        Self { key: job.key(), name, failed: problem.to_string(), console }
    }

    /// The name of its log in the result directory.
    pub fn log(key: RunKey) -> String {
        format!("failed/{}-{}.log", key.point, key.repetition)
    }
}

impl fmt::Display for FailedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, repetition {}: {}", self.name, self.key.repetition, self.failed)
    }
}
