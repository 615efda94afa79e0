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
    /// What to measure: each program, each connection, or each HTTP/1 request (`"transaction"`). Default `"program"`.
    #[serde(default)]
    pub measure: Measure,
    /// Time limit of the programs, in virtual time. Default 10 min.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Duration>,
}

impl Programs {
    /// Returns the time limit of the programs, in virtual time.
    pub fn time_limit(&self) -> Duration {
        self.limit.unwrap_or(Duration::from_secs(600))
    }
}

/// What is measured about programs, from the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Each program's run time; services are not measured.
    #[default]
    Program,
    /// Each connection's duration, measured from its packets.
    Connection,
    /// Each HTTP/1 request's duration, measured from its packets.
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

    /// Always panics, because the programs of the workload take the place of client applications: a kernel runs them,
    /// and the model rejects the workload.
    ///
    /// # Panics Always.
    fn client(&self, _: StreamLayout, _: u64, _: Seed) -> Box<dyn Application> {
        unreachable!("programs have no application in the model; a kernel starts them")
    }

    /// Always panics, because the programs of the workload take the place of server applications.
    ///
    /// # Panics Always.
    fn server(&self, _: StreamLayout, _: u64, _: Host) -> Box<dyn Application> {
        unreachable!("programs have no application in the model; a kernel starts them")
    }
}
