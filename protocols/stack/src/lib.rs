#![doc = include_str!("../README.md")]
//!
//! ## Files
//!
//! A stack is one file in `stacks/`, with a table for each protocol that gives the value of every option. A specification is a
//! protocol, a stack, and options that override the stack's values.

mod error;
mod kind;
mod metrics_cache;
mod options;
mod socket_style;
mod spec;
mod stacks;
mod tls;

pub use error::SpecError;
pub use kind::ProtocolKind;
pub use metrics_cache::MetricsCache;
pub use options::canonical_option_name;
pub use socket_style::SocketStyle;
pub use spec::{Protocol, TransportSpec};
pub use stacks::{DEFAULT_STACK, Stack, linux_version, stack, stack_of_linux, stacks};
pub use tls::Tls;
