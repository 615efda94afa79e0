//! The state of runs over time: small multiples of one run of each transport with a common time axis.

mod draw;
mod gather;
mod line;

pub(crate) use gather::gather;
pub use line::Line;

/// The runs of all transports under one set of conditions.
#[derive(Debug, Clone)]
pub struct OverTime {
    /// File name and anchor.
    pub id: String,
    /// A description of the conditions; empty if there is only one set.
    pub place: String,
    /// The interval of the samples, in s.
    pub interval_s: f64,
    /// The name of the queue that is drawn, and its limit if it is in packets.
    pub queue: Option<(String, Option<u64>)>,
    /// When a link goes down or the client moves, in s since the start.
    pub events: Vec<f64>,
    /// One run of each transport.
    pub runs: Vec<Run>,
}

/// A run over time, in seconds from its start.
#[derive(Debug, Clone)]
pub struct Run {
    /// The transport's label.
    pub transport: String,
    /// A description of the sender that is drawn; `None` if no sender has a window.
    pub sender: Option<String>,
    /// The index of its flow; 0 is measured.
    pub flow: u32,
    /// The end of the run.
    pub ended_s: f64,
    /// The goodput of the flow in parts of equal length: start of each part, and kbit/s.
    pub goodput: Vec<(f64, f64)>,
    /// cwnd in octets.
    pub cwnd: Line,
    /// ssthresh in octets.
    pub ssthresh: Line,
    /// Octets in flight.
    pub in_flight: Line,
    /// The smoothed round-trip time in ms.
    pub srtt: Line,
    /// Packets in the queue.
    pub queued: Line,
    /// The times of retransmissions, at most one for each column of pixels.
    pub sent_again: Vec<f64>,
    /// The times at which the queue dropped packets, or the link lost them.
    pub dropped: Vec<f64>,
}
