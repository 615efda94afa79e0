//! Links of a run to runs on other threads.

use hol_base::Duration;
use hol_workloads::{OnwardClient, PendingRequests};

use crate::{RunStart, StopSignal, WakeSignal};

/// Links of a run to runs on other threads; none by default.
#[derive(Debug, Default)]
pub struct RunLinks<'t> {
    /// The signal that ends the run from another thread. The run then counts as finished.
    pub stop: Option<&'t StopSignal>,
    /// The client of an onward flow, which sends requests on behalf of a server.
    pub onward_client: Option<OnwardClient>,
    /// The server's requests that wait for replies to onward requests.
    pub pending_requests: Option<PendingRequests>,
    /// The signal that wakes the run when one of these links has work.
    pub wake_signal: Option<WakeSignal>,
    /// The start of the run, which is set when the clock starts.
    pub beginning: Option<&'t RunStart>,
    /// The sampling interval, in the run's time.
    pub interval: Option<Duration>,
}
