//! The messages between hosts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_base::Duration;
use hol_network::NetworkSpec;
use hol_scenario::{Sample, Scenario};
use hol_sockets::{CompactSenderSample, EndResult, PeerReport};
use serde::{Deserialize, Serialize};

use crate::placement::Placement;

/// Maximum number of samples reported of a run: one more than allowed, so that the run is rejected as in
/// every world.
pub(crate) const MOST_SEEN: usize = Sample::MOST as usize + 1;

/// A message of the host with the experiment.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Keepalive.
    Alive,
    /// Asks for the time.
    Ping,
    /// Asks whether the host can run this.
    Check(Box<Scenario>),
    /// Assigns the host's ends; they listen first.
    Plan(Box<Plan>),
    /// Starts the clients; by flow, the ports of servers on other hosts.
    Start { ports: Vec<u16> },
    /// News of the server of a flow whose client the host has.
    News(usize, PeerReport),
    /// Ends the host's clients.
    EndClients,
    /// All clients have ended; asks for the results.
    Over,
    /// To a router: asks whether it lies between these two.
    Between { client: IpAddr, server: IpAddr },
    /// To a router: shapes the path between them.
    Shape { network: Box<NetworkSpec>, seed: u64 },
    /// To a router: restores the path and asks for its counters.
    PutBack,
}

/// A run, as one of its hosts receives it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    /// Sampling interval of senders, if they are sampled.
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
    /// It serves another client, at that address; the only message.
    Busy(String),
    /// When the question arrived and when the answer was sent, on its monotonic clock.
    Pong { received: u64, sent: u64 },
    /// It can; its relevant settings.
    Fit(BTreeMap<String, String>),
    /// It cannot, with the reason.
    Refused(String),
    /// By flow, the ports of its servers.
    Ready { ports: Vec<u16> },
    /// It has ended its clients.
    ClientsEnded,
    /// An event of a flow's server there.
    News(usize, PeerReport),
    /// Samples of its senders, by flow: a part of them, sent before the results.
    Seen(Vec<(usize, CompactSenderSample)>),
    /// The results of its ends.
    Noted(Vec<(usize, EndResult)>),
    /// It failed, with the reason.
    Failed(String),
    /// A router lies between them; its interfaces to the client and the server.
    Way([String; 2]),
    /// The path is shaped.
    Shaped,
    /// The path is restored; the packets that passed to the server, and to the client.
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
    pub(crate) kernel: String,
    pub(crate) clocksource: String,
}
