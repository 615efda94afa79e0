//! What a run is made of, and what comes out of it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_base::{Seed, Time};
use hol_measure::Record;
use hol_scenario::{FilterFacts, RunEnd, Sample, Side, WaitFacts};
use hol_stack::TransportSpec;
use hol_transport::PathStatus;
use hol_workloads::{HostSpec, Processor, WorkloadSpec};
use serde::{Deserialize, Serialize};

/// One flow: a workload over a transport between two ends.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// How the messages travel.
    pub transport: TransportSpec,
    /// What the application does.
    pub workload: WorkloadSpec,
    /// How many messages (or transactions) it sends.
    pub messages: u64,
    /// Draws what the workload leaves open, as in the model world.
    pub seed: Seed,
    /// Where the client is.
    pub client: Site,
    /// Whether the client's addresses come and go.
    pub client_moves: bool,
    /// Where the server is.
    pub server: Site,
    /// What its host has for it.
    pub server_host: HostSpec,
    /// The processors of the client's host and the server's, which other flows may use too; they count in ns since 1970.
    pub processors: [Option<Processor>; 2],
    /// How its connections end.
    pub ending: Ending,
    /// Whether messages that wait go to the kernel together, some at a time, and what has come is read between: a real clock goes on
    /// while they are handed over, and who is late would never catch up one by one.
    pub gathers: bool,
    /// Whether the kernel is asked when it had what is read, so that it is known how long messages lay in their sockets: those of TCP,
    /// MPTCP and UDP.
    pub stamps: bool,
}

/// How the connections of a run end once its records are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Both ends break off (RST, ABORT): nothing lingers that a later run on the same ports would meet.
    Abort,
    /// Both ends close in an orderly way (FIN, SHUTDOWN), so that hosts may keep what they learnt.
    Close,
}

/// The addresses of one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// At least one; SCTP uses all of them unless single-homed, the first as the primary path, the others use the first.
    pub addresses: Vec<IpAddr>,
    /// The port; 0 lets the kernel choose. Parallel connections take the client's ports from this one on while there
    /// are any.
    pub port: u16,
}

/// What one flow measured. Time counts from the first attempt to connect.
#[derive(Debug, Clone)]
pub struct FlowRun {
    /// One record for each message of the schedule, in its order, also for those that never arrived.
    pub records: Vec<Record>,
    /// What the wall clock showed at the first attempt to connect, in ns since 1970: captures count from there.
    pub epoch: u64,
    /// When every connection was open for sending; the schedule starts here.
    pub connected: Option<Time>,
    /// When the last message was settled, or the run was given up.
    pub ended: Time,
    /// Why the run ended.
    pub stopped: RunEnd,
    /// It ended because another thread wanted it to.
    pub was_stopped: bool,
    /// What the kernel counted for the client's sockets.
    pub client: Counts,
    /// What the kernel counted for the server's sockets.
    pub server: Counts,
    /// How long messages lay in the client's sockets and in the server's, where the kernel was asked and told.
    pub waits: [Option<WaitFacts>; 2],
    /// What decrypts the packets of its connections, in the lines of a TLS key log; empty: nothing is encrypted.
    pub secrets: String,
    /// What became of the paths of an SCTP association, in the order of the notifications.
    pub paths: Vec<PathChange>,
    /// What the packet filter held in the end, if there was one.
    pub filter: Option<FilterFacts>,
    /// How its senders stood from time to time, if anybody wanted to know.
    pub samples: Vec<Sample>,
}

impl FlowRun {
    /// How long messages lay in the sockets of each end, where the kernel told.
    pub fn waited(&self) -> BTreeMap<Side, WaitFacts> {
        let sides = [Side::Client, Side::Server].into_iter().zip(self.waits);
        sides.filter_map(|(side, waits)| Some((side, waits?))).collect()
    }
}

/// What the kernel counted for the sockets of one end; zero where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Data segments or DATA chunks sent again, for whatever reason.
    pub retransmissions: u64,
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |total, one| Self {
            packets_sent: total.packets_sent + one.packets_sent,
            packets_received: total.packets_received + one.packets_received,
            retransmissions: total.retransmissions + one.retransmissions,
        })
    }
}

/// A notification of a peer address change. RFC 6458 section 6.1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathChange {
    /// When it was read.
    pub at: Time,
    /// Who was told.
    pub end: Side,
    /// The peer's address.
    pub address: IpAddr,
    /// Its new state.
    pub status: PathStatus,
}
