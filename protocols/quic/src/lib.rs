#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! Each file has one topic. `endpoint` is the main state machine, extended by `connect`, `receive`, `send`,
//! `close` and `timers`; the others are small state machines. quinn-proto implements QUIC; this crate maps
//! messages to its streams.
//!
//! Packets have two forms (`packet_form`). In the model world packets are unencrypted (`cleartext`): an endpoint
//! implements the trait of all transports, and its packets show which octets of which stream were sent when:
//! `first_sent` at the sender, `arrivals` at the receiver. Over sockets they are encrypted (`encrypted`, `tls`), and
//! datagrams are octets.
//!
//! Each direction of an application's stream is a unidirectional QUIC stream. The first stream is the control stream;
//! its end means that no more data follow. Pacing is quinn-proto's and cannot be switched off.

mod arrivals;
mod cleartext;
mod clock;
mod close;
mod config;
mod connect;
mod connection_ids;
mod ecn;
mod encrypted;
mod endpoint;
mod first_sent;
mod in_flight;
mod keys;
mod packet_form;
mod receive;
mod resumption;
mod send;
mod session;
mod settings;
mod socket_address;
mod stacks;
mod tickets;
mod timers;
mod tls;

pub use {hol_base as base, hol_transport as transport, hol_wire as wire};

pub use cleartext::CleartextPackets;
pub use config::{Config, Congestion, MessageMapping};
pub use encrypted::{EncryptedPackets, OutgoingDatagram};
pub use endpoint::Endpoint;
pub use hol_transport::ConfigError;
pub use packet_form::EndpointOutput;
pub use tls::{KeyLog, Tls};
