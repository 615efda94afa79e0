#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! One idea per file. Files with the same name in the SCTP crate have the same purpose: start at `endpoint`,
//! then follow a connection through `connect`, `send`, `receive`, `acknowledge`, `ack`, `recover`, `resend`,
//! `timeout` and `close`.

mod accurate_ecn;
mod ack_info;
mod close;
mod config;
mod connect;
mod delayed_ack;
mod duplicates;
mod ecn;
mod ecn_octets;
mod endpoint;
mod episode;
mod info;
mod keepalive;
mod nagle;
mod offload;
mod pacing;
mod packet_memory;
mod persist;
mod phase;
mod prediction;
mod prr;
mod rack;
mod rate_halving;
mod reassembly;
mod receive;
mod receive_ack;
mod receive_buffer;
mod receive_sequence;
mod recover;
mod reordering;
mod resend;
mod right_sizing;
mod rtt;
mod sack;
mod sack_compression;
mod scoreboard;
mod send;
mod send_buffer;
mod send_queue;
mod send_sequence;
mod stacks;
mod state;
mod state_machine;
mod timeout;
mod timers;
mod timestamps;
mod tlp;
mod undo;
mod validation;

pub use {hol_base as base, hol_transport as transport, hol_wire as wire};

pub use config::{Config, CongestionUnit, ETHERNET_MSS, Nagle, RateHalving, Recovery, RttEstimator};
pub use connect::reset_for;
pub use endpoint::Endpoint;
pub use hol_congestion::Algorithm;
pub use hol_transport::ConfigError;
pub use info::Info;
pub use state::State;
