//! The messages between hosts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_base::Duration;
use hol_network::NetworkSpec;
use hol_scenario::{Sample, Scenario};
use hol_sockets::{CompactSenderSample, EndResult, PeerReport};
use serde::{Deserialize, Serialize};

use crate::placement::Placement;

/// Maximum number of samples that a host reports on a run. It is one more than a run may have, so that a run with too
/// many samples is rejected, as in every world.
pub(crate) const MAX_SAMPLES: usize = Sample::MAX_PER_RUN as usize + 1;

/// A message from the host with the experiment to another host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Keeps the connection alive.
    Alive,
    /// Requests the time on the host's clock.
    Ping,
    /// Asks whether the host can run this scenario.
    Check(Box<Scenario>),
    /// Assigns ends of flows to the host, whose servers then begin to listen.
    Plan(Box<RunDescription>),
    /// Starts the clients. `ports` contains the ports of the servers on other hosts, by flow.
    Start { ports: Vec<u16> },
    /// Report of the server of a flow whose client runs on the receiving host.
    #[serde(rename = "News")]
    ServerReport(usize, PeerReport),
    /// Requests that the host ends its clients.
    EndClients,
    /// Reports that all clients have ended, and requests the results.
    #[serde(rename = "Over")]
    End,
    /// Asks a router whether it lies between these two hosts.
    Between { client: IpAddr, server: IpAddr },
    /// Requests that a router emulates the path between these hosts.
    Shape { network: Box<NetworkSpec>, seed: u64 },
    /// Requests that a router restores the path and sends its counters.
    #[serde(rename = "PutBack")]
    Restore,
}

/// The description of a run that its hosts receive.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunDescription {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    /// Sampling interval of senders; `None` if they are not sampled.
    pub(crate) interval: Option<Duration>,
    /// The host on which each end runs; its field `own` is the receiving host.
    pub(crate) placement: Placement,
    /// A unique number of the run.
    pub(crate) run: [u8; 32],
}

/// A message from another host to the host with the experiment.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Keeps the connection alive.
    Alive,
    /// Describes the host; this is the first message of a connection.
    Host(HostDescription),
    /// The host is serving another client, at this address. No other message follows.
    Busy(String),
    /// The times at which a query arrived and at which this reply was sent, on the host's monotonic clock.
    Pong { received: u64, sent: u64 },
    /// The host can run the scenario; contains the host's sysctls that affect the measurement.
    #[serde(rename = "Fit")]
    Supported(BTreeMap<String, String>),
    /// The host cannot run the scenario; contains the reason.
    Refused(String),
    /// The servers listen; contains their ports, by flow.
    Ready { ports: Vec<u16> },
    /// The host has ended its clients.
    ClientsEnded,
    /// A report by a flow's server, which runs on this host.
    #[serde(rename = "News")]
    ServerReport(usize, PeerReport),
    /// Some of the samples of the host's senders, by flow. All samples are sent before the results.
    #[serde(rename = "Seen")]
    Samples(Vec<(usize, CompactSenderSample)>),
    /// The results of the flows' ends on the host.
    #[serde(rename = "Noted")]
    Results(Vec<(usize, EndResult)>),
    /// The host failed; contains the reason.
    Failed(String),
    /// The router lies between the hosts; contains its interfaces to the client and to the server.
    #[serde(rename = "Way")]
    Interfaces([String; 2]),
    /// The router now emulates the path.
    Shaped,
    /// The path is restored; contains the counters of packets to the server and of packets to the client.
    LinkCounters([LinkCounters; 2]),
}

/// The counters of a link's queueing disciplines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkCounters {
    /// Number of packets forwarded.
    pub(crate) carried: u64,
    /// Number of packets lost at random or dropped by a full queue.
    pub(crate) dropped: u64,
}

/// A host's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostDescription {
    /// The release of the kernel.
    pub(crate) kernel: String,
    /// The clock source of the kernel.
    pub(crate) clocksource: String,
}
