//! The TCP header and its options. RFC 9293 section 3.1, RFC 2018, RFC 7323.

mod options;
mod segment;

pub use options::{Options, SackBlock, Timestamps};
pub use segment::{Flags, Segment, SeqNum};
