//! Time series of runs: a Parquet file for each run (docs/results.md). It contains the congestion windows,
//! round-trip times and octets in flight of senders, the lengths of queues, and the deliveries of flows.
//! Column names contain units.

mod delivered;
mod read;
mod write;

use std::sync::Arc;

use hol_base::{Duration, Time};
use hol_scenario::{Sample, Side};

pub use read::Series;
pub(crate) use write::SeriesFile;

/// Shortest interval of a time series. With shorter intervals there would be more rows than events.
pub const SHORTEST_INTERVAL: Duration = Sample::SHORTEST_INTERVAL;

/// The version of the layout, in the file's metadata. It is increased with every change of the layout.
const SCHEMA_VERSION: &str = "1";

/// A sample of a sender, a queue or a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Time of the sample since the start of the run.
    pub at: Time,
    /// The object that was sampled.
    pub subject: SampledObject,
    /// The values in the order of [`VALUE_COLUMNS`]; `None` if unknown.
    numbers: [Option<u64>; VALUE_COLUMNS.len()],
}

/// An object whose values are sampled during a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SampledObject {
    /// The sender at one end of a connection, for the path to one address of its peer.
    Sender {
        /// The index of the flow; the measured flow has index 0.
        flow: u32,
        /// The index of the connection at this end of the flow, in the order in which the end opened or accepted
        /// connections.
        connection: u32,
        /// The end of the flow at which the sender is: client or server.
        side: Side,
        /// The peer's address to which the path leads.
        path: Arc<str>,
    },
    /// The queue with this name: the name of its interface or LAN.
    Queue(Arc<str>),
    /// The flow with this index; its goodput since the previous row is sampled.
    Flow(u32),
}

/// The columns with sampled values, which follow the columns that name the sampled object.
const VALUE_COLUMNS: [&str; 11] = [
    "cwnd_octets",
    "ssthresh_octets",
    "srtt_ns",
    "pacing_octets_per_s",
    "in_flight_octets",
    "sent_again",
    "queue_packets",
    "queue_octets",
    "dropped",
    "lost",
    "delivered_octets",
];

impl SampledObject {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Sender { .. } => "sender",
            Self::Queue(_) => "queue",
            Self::Flow(_) => "flow",
        }
    }

    const fn flow(&self) -> Option<u64> {
        match self {
            Self::Sender { flow, .. } | Self::Flow(flow) => Some(*flow as u64),
            Self::Queue(_) => None,
        }
    }

    const fn connection(&self) -> Option<u64> {
        match self {
            Self::Sender { connection, .. } => Some(*connection as u64),
            Self::Queue(_) | Self::Flow(_) => None,
        }
    }

    fn side(&self) -> Option<String> {
        match self {
            Self::Sender { side, .. } => Some(side.name().to_owned()),
            Self::Queue(_) | Self::Flow(_) => None,
        }
    }

    fn path(&self) -> Option<String> {
        match self {
            Self::Sender { path, .. } => Some(path.to_string()),
            Self::Queue(_) | Self::Flow(_) => None,
        }
    }

    fn queue(&self) -> Option<String> {
        match self {
            Self::Queue(name) => Some(name.to_string()),
            Self::Sender { .. } | Self::Flow(_) => None,
        }
    }
}

impl Row {
    /// Returns a value by the name of its column.
    ///
    /// # Panics
    /// Panics if there is no such column.
    pub fn number(&self, column: &str) -> Option<u64> {
        let place = VALUE_COLUMNS.iter().position(|name| *name == column);
        self.numbers[place.unwrap_or_else(|| panic!("there is no column {column}"))]
    }
}
