//! A sans-IO UDP endpoint: a message is a datagram. RFC 768.
//!
//! Nobody sends a lost datagram again, unless the application is SIP: then each message is a request that its
//! transaction repeats until a response comes (RFC 3261 section 17). Left out: provisional responses before the
//! final one, the ACK of an INVITE and the repetition of its final response, and switching to TCP when a message
//! is longer than the path takes (section 18.1.1).

mod config;
mod endpoint;
mod seen;
#[cfg(test)]
mod tests;
mod transaction;

pub use config::{Config, Sip};
pub use endpoint::Endpoint;
