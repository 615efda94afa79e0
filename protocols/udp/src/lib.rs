//! A sans-IO UDP endpoint: a message is a datagram. RFC 768.
//!
//! Lost datagrams are not sent again, except with SIP: then each message is a request that its transaction
//! repeats until a response arrives (RFC 3261 section 17). Not implemented: provisional responses, the ACK of
//! an INVITE, retransmission of its final response, and the switch to TCP for messages longer than the path
//! MTU (section 18.1.1).

mod config;
mod endpoint;
mod seen;
mod stacks;
#[cfg(test)]
mod tests;
mod transaction;

pub use {hol_base as base, hol_transport as transport, hol_wire as wire};

pub use config::{Config, Sip};
pub use endpoint::Endpoint;
pub use hol_transport::ConfigError;
