#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! One idea per file. Files with the same name in the SCTP crate have the same purpose: start at `endpoint`,
//! then follow a connection through `connect`, `send`, `receive`, `delayed_ack`, `receive_ack`, `recover`, `resend`,
//! `timeout` and `close`.

mod accurate_ecn;
mod ack_info;
mod close;
mod config;
mod connect;
mod cwnd_validation;
mod delayed_ack;
mod duplicate_acks;
mod ecn;
mod ecn_octets;
mod endpoint;
mod header_prediction;
mod keepalive;
mod loss_recovery;
mod nagle;
mod offload;
mod pacing;
mod packet_memory;
mod persist;
mod prr;
mod rack;
mod rate_halving;
mod reassembly;
mod receive;
mod receive_ack;
mod receive_buffer;
mod receive_sequence;
mod recover;
mod recovery_phase;
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
mod tcp_info;
mod timeout;
mod timers;
mod timestamps;
mod tlp;
mod undo;

pub use {hol_base as base, hol_transport as transport, hol_wire as wire};

pub use config::{Config, CongestionUnit, ETHERNET_MSS, LossDetection, Nagle, RateHalving, RttEstimator};
pub use connect::reset_for;
pub use endpoint::Endpoint;
pub use hol_congestion::Algorithm;
pub use hol_transport::ConfigError;
pub use state::State;
pub use tcp_info::Info;
