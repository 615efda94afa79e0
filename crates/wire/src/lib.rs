//! Typed packets, their bytes, and pcapng.
//!
//! In the model world packets travel as these values; `emit` and `parse` turn them into bytes for captures,
//! real networks and fuzzing, and a property test holds the two equal. One header or chunk a file.

mod packet;
pub mod sctp;
pub mod tcp;

pub use packet::{Address, Packet, Stamp, Transport};
