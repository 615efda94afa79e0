//! `pingpong`: like `echo`, but the next message is sent when the reply to the previous one has arrived.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::padded_workloads::Padded;
use crate::{MessageSize, Pace};

/// Settings of the workload `pingpong`: the keys of `[workload] kind = "pingpong"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pingpong {
    /// Octets per message and reply. Default 128.
    #[serde(default)]
    pub size: MessageSize<128>,
}

impl Padded for Pingpong {
    const NAME: &'static str = "pingpong";
    const ABOUT: &'static str = "like echo, but each message waits for the previous reply";
    const IS_ECHOED: bool = true;

    fn octets(&self) -> u64 {
        self.size.0.0
    }

    fn pace(&self) -> Pace {
        Pace::Replied
    }
}
