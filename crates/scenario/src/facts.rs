//! What a world that is not ours tells of itself beside the records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a kernel tells of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The kernel's version, as `uname` gives it.
    pub kernel: String,
    /// What ran it, and in which mode.
    #[serde(default)]
    pub provenance: String,
    /// What makes its results worth less, with the cure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// What its clock counts.
    pub clocksource: String,
    /// Every setting of the namespaces of the endpoints that was written, with the value that the kernel then had.
    pub sysctls: BTreeMap<String, String>,
    /// What each line did, by name.
    pub lines: Vec<LineFacts>,
    /// What each line took before the run: what the machine adds to the delays and rates asked for.
    pub floor: Vec<Floor>,
    /// What the packet filter held in the end, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterFacts>,
    /// Data sent again, both endpoints together.
    pub retransmissions: u64,
}

/// What the packet filter held, beside what the middlebox had granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
