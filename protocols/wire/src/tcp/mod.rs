//! The TCP header and its options. RFC 9293 section 3.1, RFC 2018, RFC 7323, RFC 8684, RFC 9768.

mod ecn_counters;
mod mptcp;
mod options;
mod segment;

pub use ecn_counters::EcnCounters;
pub use mptcp::{DataSeq, Mapping, Mptcp};
pub use options::{Options, SackBlock, SackBlocks, Timestamps};
pub use segment::{Flags, Segment, SeqNum};
