//! What the application does: sans-IO workloads and the open-loop load generator.
//!
//! A workload has two sides, [`Client`] and [`Server`]; they see whole messages and nothing of the transport
//! but its number of streams. Each keeps a journal, and [`records`] joins the two.

mod agent;
mod client;
mod contract;
mod firewall;
mod held;
mod journal;
mod mix;
mod padding;
mod schedule;
mod server;
mod spec;

pub use client::Client;
pub use contract::{Application, Delivery, Face, Input, Outgoing, Output, Trouble};
pub use firewall::Enforce;
pub use journal::records;
pub use mix::Mix;
pub use server::Server;
pub use spec::{Arrivals, Filter, Kind, WorkloadError, WorkloadSpec};

use hol_transport::FramingError;

/// So many messages has a workload that goes on until something else ends the run.
pub const ENDLESS: u64 = u64::MAX;

impl WorkloadSpec {
    /// How long a message is, from its first octets: what a byte stream's framer needs.
    pub fn length_of(&self) -> fn(&[u8]) -> Result<Option<usize>, FramingError> {
        match self.kind {
            Kind::Simco => agent::length_of,
            Kind::Echo | Kind::Pingpong | Kind::Oneway | Kind::Bulk => padding::length_of,
        }
    }
}
