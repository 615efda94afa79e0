//! `bulk`: a greedy sender.

use hol_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::padded_workloads::Padded;
use crate::{MessageSize, Pace};

/// Settings of the workload `bulk`: the keys of `[workload] kind = "bulk"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Octets per message. Default 4,096.
    #[serde(default)]
    pub size: MessageSize<4096>,
    /// Stop sending this long after the connections open; messages that the transport has accepted by then still
    /// arrive. Default never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Duration>,
}

impl Padded for Bulk {
    const NAME: &'static str = "bulk";
    const ABOUT: &'static str = "like oneway, as fast as the transport accepts messages: a greedy sender";
    const IS_ECHOED: bool = false;
    const KEYS: &'static [&'static str] = &["size", "lasts"];

    fn octets(&self) -> u64 {
        self.size.0.0
    }

    fn pace(&self) -> Pace {
        Pace::Accepted
    }

    fn max_duration(&self) -> Option<Duration> {
        self.lasts
    }
}
