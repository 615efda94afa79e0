//! The input and the result of a run on sockets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_base::{Seed, Time};
use hol_measure::Record;
use hol_scenario::{FilterReport, ReadDelays, RunEnd, Sample, Side};
use hol_stack::TransportSpec;
use hol_transport::PathStatus;
use hol_workloads::{HostSpec, Processor, WorkloadSpec};
use serde::{Deserialize, Serialize};

/// The parameters of one flow: a workload over a transport between two ends.
#[derive(Debug, Clone)]
pub struct FlowParameters {
    /// The transport.
    pub transport: TransportSpec,
    /// The workload.
    pub workload: WorkloadSpec,
    /// Number of messages (or transactions).
    pub messages: u64,
    /// Seed of the workload's random values, as in the model world.
    pub seed: Seed,
    /// The client's addresses.
    pub client: EndAddresses,
    /// Whether the client's addresses change during the run.
    pub client_moves: bool,
    /// The server's addresses.
    pub server: EndAddresses,
    /// The properties of the server's host.
    pub server_host: HostSpec,
    /// The processors of the client's and the server's host, which other flows may share; their clock counts
    /// ns since 1970.
    pub processors: [Option<Processor>; 2],
    /// How the flow's connections end.
    pub ending: Ending,
    /// Whether the sender passes waiting messages to the kernel in groups and reads between them. In real
    /// time, a late sender could not catch up message by message.
    pub is_batching: bool,
    /// Whether the kernel reports when it received data, to measure how long messages waited in the sockets
    /// of TCP, MPTCP and UDP.
    pub reports_receive_time: bool,
}

/// How the connections of a run end after its records are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Both ends abort (RST, ABORT), so that no packet of this run reaches a later run on the same ports.
    Abort,
    /// Both ends close in order (FIN, SHUTDOWN), so that hosts may cache metrics.
    Close,
}

/// The addresses of one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndAddresses {
    /// At least one address. SCTP uses all of them unless single-homed, the first as the primary path; other
    /// transports use the first.
    pub addresses: Vec<IpAddr>,
    /// The port; 0 lets the kernel choose. Parallel connections use consecutive client ports starting with
    /// this one.
    pub port: u16,
}

/// The result of one flow. Times count from the first attempt to connect.
#[derive(Debug, Clone)]
pub struct FlowRun {
    /// One record per scheduled message, in order, including messages that never arrived.
    pub records: Vec<Record>,
    /// Wall clock at the first attempt to connect, in ns since 1970; captures count from there.
    pub epoch: u64,
    /// When every connection was open for sending, which starts the schedule.
    pub connected: Option<Time>,
    /// When the last message was settled, or the run was aborted.
    pub ended: Time,
    /// Why the run ended.
    pub run_end: RunEnd,
    /// Whether another thread stopped the flow.
    pub was_stopped: bool,
    /// The kernel's counters of the client's sockets.
    pub client: SocketCounters,
    /// The kernel's counters of the server's sockets.
    pub server: SocketCounters,
    /// How long messages waited in the client's and the server's sockets, if the kernel reported it.
    pub waits: [Option<ReadDelays>; 2],
    /// The secrets that decrypt the flow's packets, as lines of a TLS key log; empty if nothing is
    /// encrypted.
    pub secrets: String,
    /// State changes of the paths of an SCTP association, in the order of the notifications.
    pub paths: Vec<PathChange>,
    /// The rules in the packet filter at the end, if there was a filter.
    pub filter: Option<FilterReport>,
    /// Samples of the flow's senders, if requested.
    pub samples: Vec<Sample>,
}

impl FlowRun {
    /// Returns how long messages waited in the sockets of each end, if known.
    pub fn read_delays(&self) -> BTreeMap<Side, ReadDelays> {
        let sides = [Side::Client, Side::Server].into_iter().zip(self.waits);
        sides.filter_map(|(side, waits)| Some((side, waits?))).collect()
    }
}

/// The kernel's counters of one end's sockets; zero where unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SocketCounters {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Data segments or DATA chunks retransmitted for any reason.
    pub retransmissions: u64,
}

impl std::iter::Sum for SocketCounters {
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
    /// When the notification was read.
    pub at: Time,
    /// The end that was notified.
    pub end: Side,
    /// The peer's address.
    pub address: IpAddr,
    /// The new state of the path.
    pub status: PathStatus,
}
