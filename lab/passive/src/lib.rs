//! Passive measurement: reconstructs application behaviour from packets alone.
//!
//! [`measure`] takes the packets captured at the ends of a run and returns a record for each connection (TCP, MPTCP, SCTP, UDP) and for
//! each HTTP/1 request with its response, for any program.
//!
//! `packets_in_flight` matches arriving packets with those sent; `tcp`, `mptcp`, `sctp` and `udp` find the connection and the position of data;
//! `delivery_history` stores when data was sent and arrived, `reassembly` orders the data for `http`; `connection` and `timetable` make
//! records.
//!
//! [`PathEstimator`] takes the packets captured at one point and estimates the path between two hosts (`path`); [`MessageReconstructor`]
//! reconstructs the messages of applications (`messages`).
//!
//! Packets do not show when a program wrote (assumed: when its last octet was first sent) and when it read (assumed: when everything before
//! had arrived). `measure` does not parse IP fragments, associations that began before the capture, or data in chunks other than DATA (RFC
//! 8260). HTTP ends at a gap left by SCTP's partial reliability.

mod associations;
mod connection;
mod delivery_history;
mod http;
mod messages;
mod mptcp;
mod observer;
mod packets_in_flight;
mod path;
mod reassembly;
mod sctp;
mod sequence_positions;
mod spans;
mod tcp;
mod timetable;
mod totals;
mod udp;

pub use messages::{CapturedExchange, CapturedMessages, MessageReconstructor};
pub use observer::{ObservedPacket, TrafficMeasurement, measure};
pub use path::{
    Bursts, CapturedIp, EstimateError, LossEstimate, Mtu, PathEstimate, PathEstimator, RateEstimate,
    Reordering, RoundTrip, UnknownDelay,
};
pub use totals::{Totals, TransportTotals};
