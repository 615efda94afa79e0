//! How a run stands from time to time, one Parquet file a run (docs/results.md): windows, round trips and flights of
//! senders, what waits before lines, and what flows have delivered. Units are in the names of the columns.

mod delivered;
mod read;
mod write;

use std::sync::Arc;

use hol_base::{Duration, Time};
use hol_scenario::{Sample, Side};

pub use read::Series;
pub(crate) use write::SeriesFile;

/// Nothing is looked at more often: the rows would be more than what happens.
pub const SHORTEST_INTERVAL: Duration = Sample::SHORTEST_INTERVAL;

/// The layout of these files, in their metadata; a change of it is a new number.
const SCHEMA: &str = "1";

/// What there is at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Since the start of the run.
    pub at: Time,
    /// Whose row it is.
    pub subject: Subject,
    /// The numbers, by [`NUMBERS`]; what is empty is not told.
    numbers: [Option<u64>; NUMBERS.len()],
}

/// Whose row it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// One end of a connection, and one address of its peer.
    Sender {
        /// 0 is measured.
        flow: u32,
        /// The connection, in the order in which this end had them.
        connection: u32,
        /// Which end.
        side: Side,
        /// The peer's address.
        path: Arc<str>,
    },
    /// What waits before a line, by its interface or LAN.
    Queue(Arc<str>),
    /// A flow: what was delivered since the row before.
    Flow(u32),
}

/// The columns of numbers behind those of the subject.
const NUMBERS: [&str; 11] = [
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

impl Subject {
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
    /// A number by the name of its column.
    ///
    /// # Panics
    /// If no column is called so.
    pub fn number(&self, column: &str) -> Option<u64> {
        let place = NUMBERS.iter().position(|name| *name == column);
        self.numbers[place.unwrap_or_else(|| panic!("there is no column {column}"))]
    }
}
