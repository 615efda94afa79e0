//! `[[background]]`: traffic that competes with the workload.

use hol_base::Duration;
use hol_stack::TransportSpec;
use hol_workloads::{Kind, WorkloadSpec};
use serde::{Deserialize, Serialize};

use crate::point::settled;

/// A number of applications that all do the same beside the workload, and go on until it has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// How their messages travel.
    #[serde(with = "settled")]
    pub transport: TransportSpec,
    /// What each does. Default `bulk`: a greedy sender.
    #[serde(default = "greedy")]
    pub workload: WorkloadSpec,
    /// How many there are. Default 1.
    #[serde(default = "one")]
    pub count: u16,
    /// Each starts at random up to this long after the workload's `start`. Default 1 s.
    #[serde(default = "second")]
    pub spread: Duration,
}

const fn greedy() -> WorkloadSpec {
    WorkloadSpec::new(Kind::Bulk)
}
const fn one() -> u16 {
    1
}
const fn second() -> Duration {
    Duration::from_secs(1)
}

impl Background {
    /// The same with every default spelt out.
    pub(crate) fn settled(self) -> Self {
        Self { workload: self.workload.settled(), ..self }
    }
}

impl From<&Background> for hol_model::Background {
    fn from(background: &Background) -> Self {
        let Background { transport, workload, count, spread } = background.clone();
        Self { transport, workload, count, spread }
    }
}
