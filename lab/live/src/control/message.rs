//! The messages between hosts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_base::Duration;
use hol_network::NetworkSpec;
use hol_scenario::{Sample, Scenario};
use hol_sockets::{CompactSenderSample, EndResult, PeerReport};
use serde::{Deserialize, Serialize};

use crate::placement::Placement;

/// Maximum number of samples reported of a run: one more than allowed, so that the run is rejected as in every world.
pub(crate) const MAX_SAMPLES: usize = Sample::MAX_PER_RUN as usize + 1;

/// A message from the host with the experiment to another host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Keepalive.
    Alive,
    /// Requests the host's time.
    Ping,
    /// Asks whether the host can run this scenario.
    Check(Box<Scenario>),
    /// Assigns ends of flows to the host. Its servers listen from then on.
    Plan(Box<RunDescription>),
    /// Starts the clients. `ports` contains those of the servers on other hosts, by flow.
    Start { ports: Vec<u16> },
    /// Report of the server of a flow whose client runs on the host.
    #[serde(rename = "News")]
    ServerReport(usize, PeerReport),
    /// Ends the host's clients.
    EndClients,
    /// Reports that all clients have ended, and requests the results.
    #[serde(rename = "Over")]
    End,
    /// To a router: asks whether it lies between these two hosts.
    Between { client: IpAddr, server: IpAddr },
    /// To a router: shapes the path between these hosts.
    Shape { network: Box<NetworkSpec>, seed: u64 },
    /// To a router: requests that it restores the path and sends its counters.
    #[serde(rename = "PutBack")]
    Restore,
}

/// A run, as described to one of its hosts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunDescription {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    /// Sampling interval of senders; `None` if they are not sampled.
    pub(crate) interval: Option<Duration>,
    /// Placement of all ends; `own` is the receiving host.
    pub(crate) placement: Placement,
    /// A unique number of the run.
    pub(crate) run: [u8; 32],
}

/// A message of the serving host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Keepalive.
    Alive,
    /// Identifies the host; the first message.
    Host(HostDescription),
    /// The host serves another client, at that address; the only message of the connection.
    Busy(String),
    /// When the query arrived and when this reply was sent, on the host's monotonic clock.
    Pong { received: u64, sent: u64 },
    /// The host can run the scenario; contains its relevant settings.
    #[serde(rename = "Fit")]
    Supported(BTreeMap<String, String>),
    /// The host cannot run the scenario, for this reason.
    Refused(String),
    /// The ports of the servers, by flow.
    Ready { ports: Vec<u16> },
    /// The host has ended its clients.
    ClientsEnded,
    /// Report of the server of a flow that runs on this host.
    #[serde(rename = "News")]
    ServerReport(usize, PeerReport),
    /// Some of the samples of the host's senders, by flow; all samples are sent before the results.
    #[serde(rename = "Seen")]
    Samples(Vec<(usize, CompactSenderSample)>),
    /// The results of the ends on the host.
    #[serde(rename = "Noted")]
    Results(Vec<(usize, EndResult)>),
    /// The host failed, for this reason.
    Failed(String),
    /// The router lies between the hosts; contains its interfaces to the client and to the server.
    #[serde(rename = "Way")]
    Interfaces([String; 2]),
    /// The path is shaped.
    Shaped,
    /// The path is restored; contains the counters of the packets to the server and to the client.
    LinkCounters([LinkCounters; 2]),
}

/// The counters of a link's queueing disciplines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkCounters {
    /// Packets forwarded.
    pub(crate) carried: u64,
    /// Packets lost at random or dropped by a full queue.
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
