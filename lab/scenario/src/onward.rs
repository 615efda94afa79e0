//! Onward flows: requests that a server sends to other servers before it answers.

use hol_base::Seed;
use hol_stack::TransportSpec;
use hol_workloads::WorkloadSpec;
use serde::{Deserialize, Serialize};

use crate::transport_text;

/// Requests of a server to another server, one for each request that it receives: a proxy asks its middlebox, then the next proxy. A
/// server with several onward flows sends their requests one after another, in the order of the scenario, and then answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnwardRequests {
    /// The transport of the requests.
    #[serde(with = "transport_text")]
    pub transport: TransportSpec,
    /// The workload of the requests. `from` is the server; the requests have no schedule of their own.
    pub workload: WorkloadSpec,
}

/// One onward flow in one run.
#[derive(Debug, Clone)]
pub struct OnwardFlow<'s> {
    /// The transport of the requests.
    pub transport: &'s TransportSpec,
    /// The workload of the requests, with the start that the seed of the run has drawn.
    pub workload: WorkloadSpec,
    /// The seed of the flow's random numbers.
    pub seed: Seed,
}
