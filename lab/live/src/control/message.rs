//! What hosts have to say to each other.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_base::Duration;
use hol_network::NetworkSpec;
use hol_scenario::{Sample, Scenario};
use hol_sockets::{Half, News, Seen};
use serde::{Deserialize, Serialize};

use crate::placement::Placement;

/// Samples that are told of a run at most. With one more than a run may have it is refused as in every world.
pub(crate) const MOST_SEEN: usize = Sample::MOST as usize + 1;

/// What the host with the experiment says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// It is there.
    Alive,
    /// What time is it?
    Ping,
    /// Can you do this?
    Check(Box<Scenario>),
    /// Do your ends of this; listen first.
    Plan(Box<Plan>),
    /// Begin; by flow, the ports of servers on other hosts.
    Start { ports: Vec<u16> },
    /// Something happened to the server of a flow whose client you have.
    News(usize, News),
    /// It is over: end your clients.
    EndClients,
    /// All clients have ended: what have you noted?
    Over,
    /// To a router: do you lie between these two?
    Between { client: IpAddr, server: IpAddr },
    /// To a router: have the path between them be like this.
    Shape { network: Box<NetworkSpec>, seed: u64 },
    /// To a router: have it be as it was; what has passed?
    PutBack,
}

/// What a run is, for one of the hosts that do it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    /// Look how your senders stand so often, if at all.
    pub(crate) interval: Option<Duration>,
    /// Who has what; you are its `own`.
    pub(crate) placement: Placement,
    /// A number that no other run has.
    pub(crate) run: [u8; 32],
}

/// What the host that serves says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It is there.
    Alive,
    /// Who it is: the first word.
    Host(HostWords),
    /// It has another client, at that address: the first word, and the last.
    Busy(String),
    /// When the question came, and when the answer went, on its monotonic clock.
    Pong { received: u64, sent: u64 },
    /// It can; these are its settings that matter.
    Fit(BTreeMap<String, String>),
    /// It cannot: why.
    Refused(String),
    /// By flow, the ports of its servers.
    Ready { ports: Vec<u16> },
    /// It has ended its clients.
    ClientsEnded,
    /// Something happened to a flow's server there.
    News(usize, News),
    /// How its senders stood from time to time, by flow: a part of it, before what has been noted.
    Seen(Vec<(usize, Seen)>),
    /// What its ends of flows have noted.
    Noted(Vec<(usize, Half)>),
    /// It could not do its part: why.
    Failed(String),
    /// A router does; these are its interfaces towards the client and the server.
    Way([String; 2]),
    /// The path is so now.
    Shaped,
    /// It is as it was; this has passed to the server, and to the client.
    Passed([Passed; 2]),
}

/// What came to the disciplines of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Passed {
    /// Packets that went on.
    pub(crate) carried: u64,
    /// Packets that were lost, by chance or for want of room.
    pub(crate) dropped: u64,
}

/// What a host says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostWords {
    pub(crate) kernel: String,
    pub(crate) clocksource: String,
}
