//! The job that the host gives to a guest, and the guest's report.

use hol_scenario::{RunEnd, Scenario, WorldReport};
use serde::{Deserialize, Serialize};

use crate::mailbox::MailboxContent;

/// Name of the file in which QEMU provides the job.
pub(crate) const JOB_FILE_NAME: &str = "opt/headofline/job";

/// The description of one run, which the host sends to the guest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    /// Whether to capture packets.
    pub(crate) capture: bool,
    /// The interval of the time series in ns, if one is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) series_ns: Option<u64>,
    /// Whether the run is an interactive shell instead of a workload.
    pub(crate) shell: bool,
}

/// The result of a job, which the guest sends to the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum JobResult {
    Done(Box<Report>),
    /// The user left the shell.
    ShellEnded,
    Failed(String),
}

impl JobResult {
    /// Encodes the result as JSON, for [`MailboxContent::result_json`].
    pub(crate) fn to_octets(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a result can be serialised")
    }

    /// Returns the mailbox content with which a failed guest reports the problem to the host.
    pub(crate) fn failure(problem: &impl ToString) -> MailboxContent {
        MailboxContent {
            result_json: Self::Failed(problem.to_string()).to_octets(),
            ..MailboxContent::default()
        }
    }
}

/// The guest's report of a run, without records and packets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) world_report: WorldReport,
    /// The flows: the measured one, then background flows, then those of requests that servers send to other
    /// servers.
    pub(crate) flows: Vec<FlowReport>,
    /// Number of packets that the endpoints' interfaces sent.
    pub(crate) packets: u64,
    /// TLS secrets of the captured packets, as a TLS key log.
    pub(crate) secrets: String,
}

/// The guest's report of a flow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FlowReport {
    /// The time at which every connection was open, in ns from the first attempt; `None` if not all connections
    /// were opened.
    pub(crate) connected: Option<u64>,
    /// The time at which the flow ended, in ns from the beginning of the run.
    pub(crate) ended: u64,
    /// Why the flow ended.
    pub(crate) run_end: RunEnd,
    /// Whether the flow is a background flow that was stopped because the measured flow had ended.
    pub(crate) was_stopped: bool,
}
