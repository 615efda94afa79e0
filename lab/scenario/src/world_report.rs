//! What a kernel reports about a run in addition to the records.

use std::collections::BTreeMap;

use hol_base::Duration;
use serde::{Deserialize, Serialize};

use crate::Side;

/// What a kernel, and the machine that it runs on, report about a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorldReport {
    /// The kernel's version, as `uname` gives it.
    pub kernel: String,
    /// The engine or machine on which the run took place, and its mode.
    #[serde(default)]
    pub provenance: String,
    /// The circumstances that make the results less reliable, and how to avoid them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// The clock source of the kernel, such as `tsc`.
    pub clocksource: String,
    /// Every sysctl of the endpoints' namespaces that was written, with the value that the kernel then reported.
    pub sysctls: BTreeMap<String, String>,
    /// The counters of each direction of a link, by name.
    #[serde(rename = "lines")]
    pub link_counters: Vec<LinkDirectionCounters>,
    /// The delay of each direction of a link, measured before the run: what the machine adds to the
    /// configured delay and rate.
    pub floor: Vec<BaselineDelay>,
    /// The contents of the packet filter after the run, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterReport>,
    /// Retransmitted segments or chunks of both endpoints.
    pub retransmissions: u64,
    /// How long messages of the measured flow waited in the receive buffers of each end, if the kernel reports it.
    #[serde(rename = "waited_ns", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waited: BTreeMap<Side, ReadDelays>,
    /// The host of the measured flow's server, if it is not the client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerHostReport>,
    /// Further hosts at which flows end, by node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, PeerHostReport>,
    /// The router between client and server that emulates the path, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterReport>,
    /// The result of each of the user's programs, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramResult>,
}

impl WorldReport {
    /// Adds a caution, if there is one.
    pub fn add_caution(&mut self, caution: Option<String>) {
        let all: Vec<String> = self.caution.take().into_iter().chain(caution).collect();
        self.caution = (!all.is_empty()).then(|| all.join("; "));
    }
}

/// How long messages waited in the sockets of an end, in ns: from the arrival of the last octet of a read
/// until that read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadDelays {
    /// Number of messages that were measured.
    pub messages: u64,
    /// Median of the waits.
    pub median: u64,
    /// 99.9th percentile of the waits.
    pub p999: u64,
    /// Maximum of the waits.
    pub max: u64,
}

/// A host other than the client's, and the relation of its clock to the client's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerHostReport {
    /// Address of the host.
    pub address: String,
    /// Local address from which the host was reached.
    pub from: String,
    /// Version of the host's kernel.
    pub kernel: String,
    /// Clock source of the host.
    pub clocksource: String,
    /// The host's sysctls that affect the measurement.
    pub sysctls: BTreeMap<String, String>,
    /// By how much the host's monotonic clock was ahead of the client's before the run, in ns.
    pub offset: i64,
    /// By how much the host's clock was faster than the client's during the run, in parts per billion.
    pub drift: i64,
    /// The largest error of one-way delays, in either direction: half of the larger of two minimum round-trip times,
    /// one measured before the run and one after it. Round-trip times use one clock and have no such error.
    pub uncertainty: Duration,
    /// The minimum round-trip time of the messages that compared the clocks.
    pub round_trip: Duration,
    /// Number of timestamps that the clocks placed before their cause, such as an arrival before its transmission. They
    /// were set equal to the time of the cause.
    pub disordered: u64,
}

/// The host between client and server that emulates the path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterReport {
    /// Address of the router.
    pub address: String,
    /// Version of the router's kernel.
    pub kernel: String,
    /// Clock source of the router.
    pub clocksource: String,
    /// Name of the router's interface towards the client.
    pub client: String,
    /// Name of the router's interface towards the server.
    pub server: String,
}

/// The result of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// Node on which the program ran.
    pub node: String,
    /// Command of the program.
    pub command: String,
    /// Start of the program, since the start of the run; zero if the program started before the run, `None` if it was
    /// never started.
    pub started: Option<Duration>,
    /// End of the program, if it ended by itself or after SIGTERM.
    pub ended: Option<Duration>,
    /// Exit status: `exit 0`, `signal 11`, or `killed` if the program did not end after SIGTERM.
    pub status: String,
    /// Processor time of the program and its children: virtual time of a processor whose speed the
    /// provenance states.
    pub processor: Duration,
    /// Metrics found in the program's output, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Standard output of the program; the middle is left out if it is long.
    pub stdout: String,
    /// Standard error of the program.
    pub stderr: String,
}

/// The contents of the packet filter, compared with the rules that the middlebox has granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterReport {
    /// Number of rules that are in force according to the middlebox.
    pub rules: usize,
    /// Number of rules in force whose lifetime ended while the filter was read.
    pub ending: usize,
    /// Number of elements of rules in force that are missing in the filter.
    pub missing: usize,
    /// Number of elements of the filter that belong to no rule.
    pub surplus: usize,
}

/// The counters of one direction of a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkDirectionCounters {
    /// Name of the direction: `link/1/up`.
    pub name: String,
    /// Packets transmitted.
    pub sent: u64,
    /// Packets dropped by the link's queue or by its loss.
    pub dropped: u64,
}

/// The delay of one direction of a link before the run, in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineDelay {
    /// Name of the direction: `link/1/up`.
    pub name: String,
    /// Measured one-way delay of one datagram.
    pub delay: u64,
    /// One-way delay that follows from the configured delay and rate.
    pub expected_delay: u64,
    /// Measured time between the arrivals of two datagrams sent back to back.
    pub spacing: u64,
    /// Time between the arrivals that follows from the configured rate.
    pub expected_spacing: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cautions_are_joined() {
        let mut world_report = WorldReport::default();
        world_report.add_caution(None);
        assert_eq!(world_report.caution, None);
        world_report.add_caution(Some("one".into()));
        world_report.add_caution(None);
        world_report.add_caution(Some("another".into()));
        assert_eq!(world_report.caution.as_deref(), Some("one; another"));
    }
}
