//! Samples of a time series: the state of senders and of queues.

use hol_base::{Duration, Time};
use hol_transport::PathState;
use serde::{Deserialize, Serialize};

/// One sample of a time series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The time since the start of the run. The sample includes every event at that time.
    pub at: Time,
    /// The sampled sender or queue.
    pub value: SampleValue,
}

/// The state of a sender or of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleValue {
    /// An end of a connection that has sent data, on one path to its peer.
    Sender(SenderSample),
    /// The queue of one direction of a link.
    Queue(QueueSample),
}

/// The state of a sender on one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderSample {
    /// Index of the flow: 0 is measured, then background flows, then onward flows.
    pub flow: u32,
    /// The index of the connection, in the order in which this end opened or accepted connections.
    pub connection: u32,
    /// The end of the flow that sends.
    pub side: Side,
    /// The state of the path.
    pub path: PathState,
    /// Number of data segments, DATA chunks or packets with data that the connection has retransmitted so
    /// far, on all paths.
    pub sent_again: Option<u64>,
}

/// An end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The end that opens the connections.
    Client,
    /// The end that accepts the connections.
    Server,
}

/// The state of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSample {
    /// The index of the queue in the order of [`Topology::queues`](hol_network::Topology::queues).
    pub queue: u32,
    /// Packets in the queue, including the one in transmission.
    pub packets: u64,
    /// Octets of these packets, with their IP headers.
    pub octets: u64,
    /// Packets that the queue has dropped so far, because it was full or by its discipline.
    pub dropped: u64,
    /// Packets lost elsewhere on the link so far, such as by random loss; `None` if unknown.
    pub lost: Option<u64>,
}

impl Sample {
    /// The limit of samples in a run; more would need hundreds of megabytes.
    pub const MAX_PER_RUN: u64 = 1 << 21;
    /// The shortest interval of samples.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_micros(10);

    /// Returns the sample with this flow index, and with its time on the run's clock, which started earlier
    /// than the flow's clock by `late`.
    #[must_use]
    pub fn with_flow(self, flow: u32, late: Duration) -> Self {
        let value = match self.value {
            SampleValue::Sender(sender) => SampleValue::Sender(SenderSample { flow, ..sender }),
            queue @ SampleValue::Queue(_) => queue,
        };
        Self { at: self.at + late, value }
    }
}

impl Side {
    /// Returns the name of the end.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}
