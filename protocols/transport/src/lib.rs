#![doc = include_str!("../README.md")]
//!
//! ## Use
//!
//! An endpoint is one end of a TCP connection or SCTP association. It is sans-IO: packets, time and
//! randomness are arguments. Call `handle` with an input, then `poll` until [`Output::Wait`]; repeat at the
//! next packet, at the next command, or at the time in `Wait`.

mod config_error;
mod contract;
mod failure;
mod framing;
mod receiving_application;

pub use config_error::ConfigError;
pub use contract::{
    Command, DeliveryTimes, Endpoint, Event, Input, Message, Output, PathState, PathStatus, ReceivedData,
    Reconfiguration, Reliability, Statistics, drain,
};
pub use failure::{Failure, Violation};
pub use framing::{FramedMessage, Framer, FramingError};
pub use receiving_application::ReceivingApplication;
