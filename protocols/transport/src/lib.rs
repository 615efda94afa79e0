//! The contract that every transport endpoint keeps, the driver that enforces it, the application that reads, and
//! message framing.
//!
//! An endpoint is one end of one TCP connection or SCTP association. It is sans-IO: packets, time and
//! randomness are arguments. `handle` an input, then `poll` until [`Output::Wait`]; repeat at the next
//! packet, the next command, or the time that `Wait` named.

mod contract;
mod framing;
mod reader;

pub use contract::{
    Command, Endpoint, Event, Input, Message, Output, Passage, PathState, PathStatus, Received,
    Reconfiguration, Reliability, Statistics, drain,
};
pub use framing::{Framed, Framer, FramingError};
pub use reader::Reader;
