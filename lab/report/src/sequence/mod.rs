//! Time-sequence diagrams of a run, with the messages that wait; the diagrams of a report show one lost
//! message.

mod diagram;
mod label;
mod trace;

use hol_scenario::RunError;
use hol_stack::TransportSpec;

use crate::plot::Svg;

pub use diagram::draw;
pub use trace::{Arrow, Delivery, PacketCollector, Trace};

/// The diagrams of the report: file name, heading, transport.
const DIAGRAMS: [(&str, &str, &str); 3] = [
    ("sequence-tcp", "TCP: all messages after the lost one wait, because they share one byte stream", "tcp"),
    (
        "sequence-sctp-1",
        "SCTP with one stream: all messages after the lost one wait, as with TCP",
        "sctp:streams=1",
    ),
    (
        "sequence-sctp-8",
        "SCTP with eight streams: only messages of the same stream can wait",
        "sctp:streams=8",
    ),
];

/// A time-sequence diagram with its heading and summary.
#[derive(Debug, Clone)]
pub struct Diagram {
    /// File name and anchor of the diagram.
    pub id: &'static str,
    /// Heading of the diagram.
    pub heading: &'static str,
    /// A summary of what happened, in numbers.
    pub summary: String,
    /// The drawing.
    pub svg: Svg,
}

/// Draws the diagrams of runs with one lost message: over TCP, and over SCTP with one and with eight streams.
pub fn diagrams() -> Result<Vec<Diagram>, RunError> {
    DIAGRAMS
        .iter()
        .map(|(id, heading, transport)| {
            let spec: TransportSpec = transport.parse().expect("the built-in specification is valid");
            let trace = trace::trace_one_loss(spec)?;
            Ok(Diagram { id, heading, summary: trace.summary(), svg: diagram::draw(id, heading, &trace) })
        })
        .collect()
}
