//! `programs`: runs the user's own programs on a kernel; the lab itself sends nothing.

use hol_base::{Duration, Seed};
use hol_measure::RecordKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Application, FramingFn, Host, Pace, StreamLayout, Workload, WorkloadError};

/// Settings of the workload `programs`: the keys of `[workload] kind = "programs"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// What to measure: the program, each connection, or each HTTP/1 request (`"transaction"`). Default `"program"`.
    #[serde(default)]
    pub measure: Measure,
    /// Time limit of the programs, in virtual time. Default 10 min.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Duration>,
}

impl Programs {
    /// Returns how long the programs may take.
    pub fn time_limit(&self) -> Duration {
        self.limit.unwrap_or(Duration::from_secs(600))
    }
}

/// What is measured, from outside the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// The run time of each program except services.
    #[default]
    Program,
    /// The duration of each connection, measured from its packets.
    Connection,
    /// The duration of each HTTP/1 request, measured from its packets.
    Transaction,
}

impl Workload for Programs {
    fn name(&self) -> &'static str {
        "programs"
    }

    fn about(&self) -> &'static str {
        "unmodified programs of [[program]] or `hol exec`, in the kernel world"
    }

    fn own_keys(&self) -> &'static [&'static str] {
        &["measure", "limit"]
    }

    fn set_defaults(&mut self) {
        self.limit = Some(self.time_limit());
    }

    fn check_own(&self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace::Replied
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn record_kind(&self) -> RecordKind {
        match self.measure {
            Measure::Program => RecordKind::Program,
            Measure::Connection => RecordKind::Connection,
            Measure::Transaction => RecordKind::Transaction,
        }
    }

    fn connections(&self, _: u64, _: u16) -> u64 {
        0
    }

    fn framing_fn(&self) -> FramingFn {
        |_| Ok(None)
    }

    /// Programs have no client application: a kernel runs the programs themselves, and the model rejects them.
    ///
    /// # Panics
    /// Always.
    fn client(&self, _: StreamLayout, _: u64, _: Seed) -> Box<dyn Application> {
        unreachable!("programs have no application in the model; a kernel starts them")
    }

    /// Programs have no server application either.
    ///
    /// # Panics
    /// Always.
    fn server(&self, _: StreamLayout, _: u64, _: Host) -> Box<dyn Application> {
        unreachable!("programs have no application in the model; a kernel starts them")
    }
}
