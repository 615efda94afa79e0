//! Samples of a time series: the state of senders, and of the queues of lines.

use hol_base::{Duration, Time};
use hol_transport::PathState;
use serde::{Deserialize, Serialize};

/// One sample of a time series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time since the start of the run. Everything that happens at that time has happened.
    pub at: Time,
    /// The sampled sender or queue.
    pub of: SampleValue,
}

/// The state of a sender or of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleValue {
    /// An end of a connection that has sent data, towards one address of its peer.
    Sender(SenderSample),
    /// The queue of a line.
    Queue(QueueSample),
}

/// The state of a sender on one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderSample {
    /// Index of the flow: 0 is measured, then background flows, then onward flows.
    pub flow: u32,
    /// The connection, in the order in which this end had them.
    pub connection: u32,
    /// Which end.
    pub side: Side,
    /// The state of the path.
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

/// The state of a line's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSample {
    /// Which, in the order of [`Topology::queues`](hol_network::Topology::queues).
    pub line: u32,
    /// Packets in the queue, including the one in transmission.
    pub packets: u64,
    /// Octets of these IP packets.
    pub octets: u64,
    /// Packets that the queue has dropped so far, full or early.
    pub dropped: u64,
    /// Packets that ended otherwise on the line so far, such as by its loss; `None` where that is not told.
    pub lost: Option<u64>,
}

impl Sample {
    /// Limit of samples in a run: more would be some hundred megabytes.
    pub const MOST: u64 = 1 << 21;
    /// The shortest interval of samples.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_micros(10);

    /// Returns the sample for the flow with this number, which began `late` after the run.
    #[must_use]
    pub fn of_flow(self, flow: u32, late: Duration) -> Self {
        let of = match self.of {
            SampleValue::Sender(sender) => SampleValue::Sender(SenderSample { flow, ..sender }),
            queue @ SampleValue::Queue(_) => queue,
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
