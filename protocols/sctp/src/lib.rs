#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! Each file has one purpose. `endpoint` takes inputs and returns outputs, `listener` accepts associations; `connect` and `close` are the
//! handshakes; `receive`, `send` and `recover` transfer data; `own_addresses` and `peer_addresses` change
//! addresses, `own_reconfig_requests` and `peer_reconfig_requests` reset and add streams. Those files add methods to
//! [`Endpoint`]; the others are small state machines: at the sender `flight` and `streams_out`, with `stream_queues`
//! and `service_order` if there is a scheduler; at the receiver `tsn_map`, `reassembly` and `streams_in`, or
//! `interleaved` instead of the latter two.

mod acknowledge;
mod authentication;
mod clock;
mod close;
mod config;
mod connect;
mod cookie;
mod ecn;
mod endpoint;
#[cfg(test)]
mod fixtures;
mod flight;
mod heartbeat;
mod held_data;
mod inbound_streams;
mod interleaved;
mod listener;
mod multipath;
mod out_of_the_blue;
mod outbound_streams;
mod own_addresses;
mod own_reconfig_requests;
mod parameters;
mod partial_reliability;
mod path;
mod peer_addresses;
mod peer_reconfig_requests;
mod rack;
mod reassembly;
mod receive;
mod recover;
mod rtt;
mod scheduler;
mod secret;
mod send;
mod send_buffer;
mod service_order;
mod stacks;
mod state;
mod stream_queues;
#[cfg(test)]
mod tests;
mod timers;
mod tlp;
mod tsn_map;

pub use {hol_base as base, hol_transport as transport, hol_wire as wire};

pub use authentication::Hash;
pub use config::{Config, IdleDecay};
pub use endpoint::Endpoint;
pub use held_data::HeldData;
pub use hol_transport::ConfigError;
pub use listener::Listener;
pub use out_of_the_blue::response_to_out_of_the_blue;
pub use path::Path;
pub use scheduler::{Scheduler, StreamValues};
