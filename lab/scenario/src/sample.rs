//! What is seen of a run at a time: how senders stand, and what waits before lines.

use hol_base::{Duration, Time};
use hol_transport::PathState;
use serde::{Deserialize, Serialize};

/// What was seen at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Since the start of the run. All that happens up to then has happened.
    pub at: Time,
    /// What was looked at.
    pub of: Sampled,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// An end of a connection that has sent data, and one of its peer's addresses.
    Sender(Sender),
    /// What waits before a line.
    Queue(Queue),
}

/// An end of a connection that sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// 0 is measured, from 1 on those of the background, then those on which servers ask.
    pub flow: u32,
    /// The connection, in the order in which this end had them.
    pub connection: u32,
    /// Which end.
    pub side: Side,
    /// How the path stands.
    pub path: PathState,
    /// Data segments, DATA chunks or packets with data that the connection has sent again so far, on all paths.
    pub sent_again: Option<u64>,
}

/// An end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// It opens the connections.
    Client,
    /// It accepts them.
    Server,
}

/// What waits before a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Which, in the order of [`Topology::queues`](hol_network::Topology::queues).
    pub line: u32,
    /// Packets that wait, the one in transmission included.
    pub packets: u64,
    /// Octets of these IP packets.
    pub octets: u64,
    /// Packets that the queue has dropped so far, full or early.
    pub dropped: u64,
    /// Packets that ended otherwise on the line so far, such as by its loss; `None` where that is not told.
    pub lost: Option<u64>,
}

impl Sample {
    /// More of a run are taken for a mistake: they would be some hundred megabytes, and nobody could draw them.
    pub const MOST: u64 = 1 << 21;
    /// Nothing is looked at more often: there would be more samples than there is to see.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_micros(10);

    /// The same of the flow of this number, which began so long after the run.
    #[must_use]
    pub fn of_flow(self, flow: u32, late: Duration) -> Self {
        let of = match self.of {
            Sampled::Sender(sender) => Sampled::Sender(Sender { flow, ..sender }),
            queue @ Sampled::Queue(_) => queue,
        };
        Self { at: self.at + late, of }
    }
}

impl Side {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}
