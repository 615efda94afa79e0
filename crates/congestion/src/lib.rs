//! Congestion controllers: pure state, facts in, window out. One algorithm a file.

mod cubic;
mod hystart;
mod reno;
pub mod sctp;
mod window;

pub use hystart::Round;
pub use window::{Algorithm, CongestionWindow};
