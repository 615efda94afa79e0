//! `[[background]]`: traffic that competes with the workload.

use hol_base::Duration;
use hol_stack::TransportSpec;
use hol_workloads::{Bulk, WorkloadSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resolved_transport;

/// Flows that compete with the measured one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Transport of the flows. Default: that of the measured flow.
    #[serde(default, with = "resolved_transport::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub transport: Option<TransportSpec>,
    /// Workload of each flow. Default `bulk`.
    #[serde(default = "default_workload")]
    pub workload: WorkloadSpec,
    /// Messages per flow before it closes. Default: until the workload ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Number of flows. Default 1.
    #[serde(default = "default_count")]
    pub count: u16,
    /// Start each flow at random within this time after its workload's `start`. Default 1 s.
    #[serde(default = "default_spread")]
    pub spread: Duration,
}

fn default_workload() -> WorkloadSpec {
    WorkloadSpec::new(Bulk::default())
}
const fn default_count() -> u16 {
    1
}
const fn default_spread() -> Duration {
    Duration::from_secs(1)
}

impl Background {
    /// Returns the entry with every default filled in. The transport stays absent if the measured flow's is used.
    pub(crate) fn with_defaults(self) -> Self {
        Self { workload: self.workload.with_defaults(), ..self }
    }

    /// Returns the background traffic for a measured flow over `transport`.
    pub(crate) fn to_scenario(&self, transport: &TransportSpec) -> hol_scenario::Background {
        let Self { transport: own, workload, messages, count, spread } = self.clone();
        let transport = own.unwrap_or_else(|| transport.clone());
        hol_scenario::Background { transport, workload, messages, count, spread }
    }
}
