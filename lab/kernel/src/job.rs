//! What the host asks of the guest, and what the guest says beside the records.

use hol_scenario::{Facts, Scenario, Stopped};
use serde::{Deserialize, Serialize};

use crate::mailbox::Mail;

/// The name that QEMU gives the file with a job.
pub(crate) const FILE: &str = "opt/headofline/job";

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    /// Whether the packets are wanted too.
    pub(crate) capture: bool,
    /// How often it is looked at, in ns, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) series_ns: Option<u64>,
    /// Whether it is for lines that are thought of while it runs, in the place of a workload.
    pub(crate) shell: bool,
}

/// What became of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done(Box<Report>),
    /// A shell was left.
    Left,
    Failed(String),
}

impl Answer {
    /// As JSON, which is the text of a mail.
    pub(crate) fn to_octets(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain data")
    }

    /// The mail of a guest that failed.
    pub(crate) fn failure(problem: &impl ToString) -> Mail {
        Mail { text: Self::Failed(problem.to_string()).to_octets(), ..Mail::default() }
    }
}

/// What the guest tells of a run beside its records and packets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) facts: Facts,
    /// The measured flow, those of the background, then those on which servers ask.
    pub(crate) flows: Vec<FlowReport>,
    /// Packets that the endpoints' interfaces sent.
    pub(crate) packets: u64,
    /// What decrypts those of a capture, in the lines of a TLS key log.
    pub(crate) secrets: String,
}

/// What became of a flow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FlowReport {
    /// When every connection was open, in ns from its first attempt.
    pub(crate) connected: Option<u64>,
    /// When it ended, in ns from the beginning of the run.
    pub(crate) ended: u64,
    /// Why.
    pub(crate) stopped: Stopped,
    /// It is of the background, and ended only because the measured flow had.
    pub(crate) was_stopped: bool,
}
