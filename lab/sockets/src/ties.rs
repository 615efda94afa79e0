//! What ties a run to others on other threads.

use hol_base::Duration;
use hol_workloads::{Asker, Desk};

use crate::{Beginning, Bell, Stop};

/// What ties a run to others; nothing, by default.
#[derive(Debug, Default)]
pub struct Ties<'t> {
    /// Another thread may end it by raising this: then the flow has finished.
    pub stop: Option<&'t Stop>,
    /// Its client asks on behalf of a server.
    pub asker: Option<Asker>,
    /// Its server asks others before it answers.
    pub desk: Option<Desk>,
    /// Rings when one of its two has something to do.
    pub bell: Option<Bell>,
    /// Is told when its clock starts.
    pub beginning: Option<&'t Beginning>,
    /// It is looked at every so often of the run's time, which began so long before it is due as its workload starts.
    pub interval: Option<Duration>,
}
