//! The TCP header and its options. RFC 9293 section 3.1, RFC 2018, RFC 7323, RFC 8684.

mod mptcp;
mod options;
mod segment;

pub use mptcp::{DataSeq, Mapping, Mptcp};
pub use options::{Options, SackBlock, SackBlocks, Timestamps};
pub use segment::{Flags, Segment, SeqNum};
