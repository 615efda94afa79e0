//! Links of a run to runs on other threads.

use hol_base::Duration;
use hol_workloads::{OnwardClient, PendingRequests};

use crate::{RunStart, StopSignal, WakeSignal};

/// Links of a run to runs on other threads; none by default.
#[derive(Debug, Default)]
pub struct RunLinks<'t> {
    /// The signal with which another thread ends the run. A run ended in this way counts as finished.
    pub stop: Option<&'t StopSignal>,
    /// The client of an onward flow, which sends requests on behalf of another flow's server.
    pub onward_client: Option<OnwardClient>,
    /// The requests of the run's server that wait for replies to onward requests.
    pub pending_requests: Option<PendingRequests>,
    /// The signal that wakes the run when one of these links has work.
    pub wake_signal: Option<WakeSignal>,
    /// The time at which the run starts; it is set when the clock starts.
    pub beginning: Option<&'t RunStart>,
    /// The interval between samples of the senders' states, in the run's time.
    pub interval: Option<Duration>,
}
