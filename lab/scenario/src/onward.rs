//! What a server asks of others before it answers.

use hol_base::Seed;
use hol_stack::TransportSpec;
use hol_workloads::WorkloadSpec;
use serde::{Deserialize, Serialize};

use crate::transport_text;

/// Requests of a server to another, one for each request that comes to it: a proxy asks its middlebox, then the next proxy. Those
/// of the same server are made one after another, in the order of the scenario; then it answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Onward {
    /// How they travel.
    #[serde(with = "transport_text")]
    pub transport: TransportSpec,
    /// What is asked; `from` is the server, and no schedule makes it due.
    pub workload: WorkloadSpec,
}

/// A flow of such requests, with what is its own.
#[derive(Debug, Clone)]
pub struct OnwardFlow<'s> {
    /// How they travel.
    pub transport: &'s TransportSpec,
    /// What is asked; its start is drawn.
    pub workload: WorkloadSpec,
    /// Where its randomness comes from.
    pub seed: Seed,
}
