//! The state of runs over time: small multiples of one run of each transport with a common time axis.

mod draw;
mod gather;
mod sampled_line;

pub(crate) use gather::gather;
pub use sampled_line::SampledLine;

/// The runs of all transports under one set of conditions.
#[derive(Debug, Clone)]
pub struct RunsOverTime {
    /// File name and anchor of the drawing.
    pub id: String,
    /// A description of the conditions; empty if there is only one set.
    pub conditions: String,
    /// The interval of the samples, in s.
    pub interval_s: f64,
    /// Name of the queue that is drawn, and its limit if the limit is in packets.
    pub queue: Option<(String, Option<u64>)>,
    /// The times when a link goes down or the client moves, in s since the start.
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
    /// Index of the flow; 0 is the measured one.
    pub flow: u32,
    /// End of the run.
    pub ended_s: f64,
    /// Goodput of the flow in intervals of equal length: start of each interval, and kbit/s.
    pub goodput: Vec<(f64, f64)>,
    /// Congestion window in octets.
    pub cwnd: SampledLine,
    /// Slow start threshold in octets.
    pub ssthresh: SampledLine,
    /// Octets in flight.
    pub in_flight: SampledLine,
    /// The smoothed round-trip time in ms.
    pub srtt: SampledLine,
    /// Packets in the queue.
    pub queued: SampledLine,
    /// The times of retransmissions, at most one per pixel column.
    pub retransmissions: Vec<f64>,
    /// The times when the queue dropped packets, or the link lost them.
    pub dropped: Vec<f64>,
}
