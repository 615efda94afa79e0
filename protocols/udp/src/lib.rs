#![doc = include_str!("../README.md")]

mod config;
mod endpoint;
mod recent_messages;
mod stacks;
#[cfg(test)]
mod tests;
mod transaction;

pub use {hol_base as base, hol_transport as transport, hol_wire as wire};

pub use config::{Config, SipTransaction};
pub use endpoint::Endpoint;
pub use hol_transport::ConfigError;
