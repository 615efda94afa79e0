//! What the host asks of the guest, and what the guest says beside the records.

use std::collections::BTreeMap;

use hol_base::{Duration, Seed};
use hol_model::{Background, Scenario};
use hol_network::NetworkSpec;
use hol_stack::SpecError;
use hol_workloads::WorkloadSpec;
use serde::{Deserialize, Serialize};

use crate::Provenance;

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) network: NetworkSpec,
    /// As its user wrote it; both sides are the same program and read it alike.
    pub(crate) transport: String,
    pub(crate) workload: WorkloadSpec,
    pub(crate) messages: u64,
    pub(crate) background: Vec<BackgroundJob>,
    pub(crate) seed: u64,
    /// Whether the packets are wanted too.
    pub(crate) capture: bool,
}

/// An entry of the background.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BackgroundJob {
    transport: String,
    workload: WorkloadSpec,
    messages: Option<u64>,
    count: u16,
    spread: Duration,
}

impl Job {
    pub(crate) fn new(scenario: &Scenario, seed: Seed, capture: bool) -> Self {
        let Scenario { network, transport, workload, messages, background } = scenario.clone();
        let entry = |Background { transport, workload, messages, count, spread }: Background| BackgroundJob {
            transport: transport.to_string(),
            workload,
            messages,
            count,
            spread,
        };
        let background = background.into_iter().map(entry);
        let (transport, background) = (transport.to_string(), background.collect());
        Self { network, transport, workload, messages, background, seed: seed.0, capture }
    }

    /// The scenario as the host had it.
    pub(crate) fn scenario(&self) -> Result<Scenario, SpecError> {
        let Self { network, transport, workload, messages, background, .. } = self.clone();
        let entry = |BackgroundJob { transport, workload, messages, count, spread }: BackgroundJob| {
            Ok(Background { transport: transport.parse()?, workload, messages, count, spread })
        };
        let background = background.into_iter().map(entry).collect::<Result<_, SpecError>>()?;
        Ok(Scenario { network, transport: transport.parse()?, workload, messages, background })
    }
}

/// What became of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done(Box<Facts>),
    Failed(String),
}

/// What the guest tells of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The kernel's version, as `uname` gives it.
    pub kernel: String,
    /// What the guest's clock counts.
    pub clocksource: String,
    /// Every setting of the namespaces of the endpoints that was written, with the value that the kernel then had.
    pub sysctls: BTreeMap<String, String>,
    /// How the run ended; `None`: everything was done.
    pub stopped: Option<String>,
    /// When every connection was open, in ns from the first attempt.
    pub connected: Option<u64>,
    /// When the run ended, in ns from the first attempt to connect.
    pub ended: u64,
    /// What each line did, by name.
    pub lines: Vec<LineFacts>,
    /// What each line took before the run: what the machine adds to the delays and rates asked for.
    pub floor: Vec<Floor>,
    /// What became of each flow of the background.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundFacts>,
    /// What the packet filter held in the end, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterFacts>,
    /// What the machine was; the host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Packets that the endpoints' interfaces sent.
    pub packets: u64,
    /// Data sent again, both endpoints together.
    pub retransmissions: u64,
}

/// What became of a flow of the background.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundFacts {
    /// When it was connected, in ns from its first attempt.
    pub connected: Option<u64>,
    /// Octets that it delivered while the measured flow's messages were carried.
    pub octets: u64,
    /// Why it ended before the measured flow, if it did.
    pub stopped: Option<String>,
}

/// What the packet filter held, beside what the middlebox had granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterFacts {
    /// Rules that the middlebox said to be in force.
    pub rules: usize,
    /// Those of them whose lifetimes ended while the filter was looked through.
    pub ending: usize,
    /// Elements of these that the filter did not hold.
    pub missing: usize,
    /// Elements that it held of no rule.
    pub surplus: usize,
}

/// What one line did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineFacts {
    /// Its name: `link/1/up`.
    pub name: String,
    /// Packets that it carried.
    pub sent: u64,
    /// Packets that it lost, in its queue or on the way.
    pub dropped: u64,
}

/// What one line took before the run, in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    /// The line: `link/1/up`.
    pub name: String,
    /// The way of one datagram as measured.
    pub delay: u64,
    /// The way that delay and rate account for.
    pub expected_delay: u64,
    /// The time between two datagrams sent back to back, as measured when they arrived.
    pub spacing: u64,
    /// The time that the rate accounts for.
    pub expected_spacing: u64,
}
