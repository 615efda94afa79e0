//! What a world that is not ours tells of itself beside the records.

use std::collections::BTreeMap;

use hol_base::Duration;
use serde::{Deserialize, Serialize};

use crate::Side;

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
    /// How long messages of the measured flow lay in the sockets of each end until they were delivered, where the kernel told.
    #[serde(rename = "waited_ns", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waited: BTreeMap<Side, WaitFacts>,
    /// The host of the measured flow's server, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerFacts>,
    /// More hosts that had ends of flows, by their places.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, PeerFacts>,
    /// The host between both that made the path, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterFacts>,
    /// What became of the user's programs, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramFacts>,
}

impl Facts {
    /// One thing more that makes the results worth less, if there is one.
    pub fn warn(&mut self, of: Option<String>) {
        let all: Vec<String> = self.caution.take().into_iter().chain(of).collect();
        self.caution = (!all.is_empty()).then(|| all.join("; "));
    }
}

/// How long messages lay in the sockets of an end until they were delivered, in ns: from when the kernel had all of what was read at
/// once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFacts {
    /// So many are known of.
    pub messages: u64,
    /// Half of them lay there no longer, …
    pub median: u64,
    /// … of a thousand 999, …
    pub p999: u64,
    /// … and none.
    pub max: u64,
}

/// Another host than that of the client, and what ties its clock to ours.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerFacts {
    /// Its address.
    pub address: String,
    /// The address here from which it was reached.
    pub from: String,
    /// Its kernel's version.
    pub kernel: String,
    /// What its clock counts.
    pub clocksource: String,
    /// Its settings that matter to what is measured.
    pub sysctls: BTreeMap<String, String>,
    /// How far its monotonic clock was ahead of ours before the run, in ns …
    pub offset: i64,
    /// … and how much faster it went during the run, in parts of 10⁹.
    pub drift: i64,
    /// One-way delays may be wrong by so much, up or down: half of the least round trip, before or after the run. Round trips
    /// have one clock and do not depend on it.
    pub uncertainty: Duration,
    /// The least round trip of the words by which the clocks were compared.
    pub round_trip: Duration,
    /// Times that would have been before their cause, as the clocks tell it, and were set equal to it.
    pub disordered: u64,
}

/// The host between client and server that made the path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterFacts {
    /// Its address.
    pub address: String,
    /// Its kernel's version.
    pub kernel: String,
    /// What its clock counts.
    pub clocksource: String,
    /// Its interface towards the client.
    pub client: String,
    /// Its interface towards the server.
    pub server: String,
}

/// What became of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramFacts {
    /// Where it ran.
    pub node: String,
    /// What was run.
    pub command: String,
    /// When it was started, since the beginning of the run; zero for what was there before; `None`: never.
    pub started: Option<Duration>,
    /// When it ended by itself, or as it was asked to.
    pub ended: Option<Duration>,
    /// `exit 0`, `signal 11`, or `killed`, for it would not end.
    pub status: String,
    /// Processor time of it and all that it started: virtual, by a processor that is as fast as the provenance says.
    pub processor: Duration,
    /// The metrics that were found, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// What it printed; of a long text the beginning and the end.
    pub stdout: String,
    /// What it complained.
    pub stderr: String,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cautions_add_up() {
        let mut facts = Facts::default();
        facts.warn(None);
        assert_eq!(facts.caution, None);
        facts.warn(Some("one".into()));
        facts.warn(None);
        facts.warn(Some("another".into()));
        assert_eq!(facts.caution.as_deref(), Some("one; another"));
    }
}
