//! Connections of a run to runs on other threads.

use hol_base::Duration;
use hol_workloads::{OnwardClient, PendingRequests};

use crate::{RunStart, Stop, WakeSignal};

/// Connections of a run to others; none by default.
#[derive(Debug, Default)]
pub struct RunLinks<'t> {
    /// Raised by another thread to end the run, which then counts as finished.
    pub stop: Option<&'t Stop>,
    /// The queue of a server for which the client asks.
    pub asker: Option<OnwardClient>,
    /// The requests that the server answers after asking others.
    pub desk: Option<PendingRequests>,
    /// The signal that wakes the run when one of these has work.
    pub bell: Option<WakeSignal>,
    /// The start of the run, to be set when the clock starts.
    pub beginning: Option<&'t RunStart>,
    /// Sampling interval in the run's time, and how long before the workload's start the run started.
    pub interval: Option<Duration>,
}
