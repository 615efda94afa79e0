//! `[[onward]]`: requests that a server sends to other servers before it answers.

use hol_stack::TransportSpec;
use hol_workloads::WorkloadSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resolved_transport;

/// A request that a server sends to another server for each request that it receives; several entries are sent one
/// after another.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Onward {
    /// Transport of the requests. Default: that of the measured flow.
    #[serde(default, with = "resolved_transport::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub transport: Option<TransportSpec>,
    /// Workload of these requests, from server `from` to server `to`.
    pub workload: WorkloadSpec,
}

impl Onward {
    /// Returns the flow of these requests; by default it uses the transport of the measured flow, `transport`.
    pub(crate) fn to_scenario(&self, transport: &TransportSpec) -> hol_scenario::OnwardRequests {
        let Self { transport: own, workload } = self.clone();
        hol_scenario::OnwardRequests { transport: own.unwrap_or_else(|| transport.clone()), workload }
    }
}
