//! Connections of a run to others on other threads.

use hol_base::Duration;
use hol_workloads::{OnwardClient, PendingRequests};

use crate::{Beginning, Bell, Stop};

/// Connections of a run to others; none by default.
#[derive(Debug, Default)]
pub struct Ties<'t> {
    /// Raised by another thread to end the run, which then counts as finished.
    pub stop: Option<&'t Stop>,
    /// Its client asks for a server.
    pub asker: Option<OnwardClient>,
    /// Its server asks others before it answers.
    pub desk: Option<PendingRequests>,
    /// Rings when one of these has something to do.
    pub bell: Option<Bell>,
    /// Is told when its clock starts.
    pub beginning: Option<&'t Beginning>,
    /// Sampling interval in the run's time, and how long before the workload's start the run started.
    pub interval: Option<Duration>,
}
