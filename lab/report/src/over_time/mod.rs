//! How runs stood over time: small multiples of one run of each transport, over one axis of time.

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
    /// The conditions in words; empty if there is but one set.
    pub place: String,
    /// How often the runs were looked at, in s.
    pub interval_s: f64,
    /// The queue that is drawn, and how many packets it holds, if it is packets that are counted.
    pub queue: Option<(String, Option<u64>)>,
    /// When a link goes down or the client moves, in s since the start.
    pub events: Vec<f64>,
    /// One of each transport.
    pub runs: Vec<Run>,
}

/// A run over time, in seconds from its start.
#[derive(Debug, Clone)]
pub struct Run {
    /// The transport's label.
    pub transport: String,
    /// Which sender is drawn, in words; `None`: nobody sent with a window.
    pub sender: Option<String>,
    /// Of what flow it is, 0 is measured.
    pub flow: u32,
    /// When it was over.
    pub ended_s: f64,
    /// What the flow delivered, in kbit/s, over parts of equal length: when each begins, and what it had.
    pub goodput: Vec<(f64, f64)>,
    /// cwnd in octets.
    pub cwnd: Line,
    /// ssthresh in octets.
    pub ssthresh: Line,
    /// What is in flight, in octets.
    pub in_flight: Line,
    /// The smoothed round-trip time in ms.
    pub srtt: Line,
    /// Packets that wait.
    pub queued: Line,
    /// When something was sent again, to a column of pixels.
    pub sent_again: Vec<f64>,
    /// When the queue dropped packets, or its line lost them.
    pub dropped: Vec<f64>,
}
