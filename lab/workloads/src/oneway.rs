//! `oneway`: messages without replies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::padded_workloads::Padded;
use crate::{Load, MessageSize, Pace};

/// Settings of the workload `oneway`: the keys of `[workload] kind = "oneway"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Oneway {
    /// The load: when messages are due.
    #[serde(flatten)]
    pub load: Load,
    /// Octets per message. Default 128.
    #[serde(default)]
    pub size: MessageSize<128>,
}

impl Padded for Oneway {
    const NAME: &'static str = "oneway";
    const ABOUT: &'static str = "messages without replies";
    const IS_ECHOED: bool = false;

    fn octets(&self) -> u64 {
        self.size.0.0
    }

    fn pace(&self) -> Pace {
        self.load.pace()
    }

    fn load(&self) -> Option<&Load> {
        Some(&self.load)
    }

    fn load_mut(&mut self) -> Option<&mut Load> {
        Some(&mut self.load)
    }
}
