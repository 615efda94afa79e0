//! `echo`: each message is sent back unchanged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::padded_workloads::Padded;
use crate::{Load, MessageSize, Pace};

/// Settings of the workload `echo`: the keys of `[workload] kind = "echo"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Echo {
    /// The load: when messages are due.
    #[serde(flatten)]
    pub load: Load,
    /// Octets per message and reply. Default 128.
    #[serde(default)]
    pub size: MessageSize<128>,
}

impl Padded for Echo {
    const NAME: &'static str = "echo";
    const ABOUT: &'static str = "the server returns each message unchanged";
    const IS_ECHOED: bool = true;

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
