//! Wake-ups of flows by other flows on the same host.

use std::sync::{Arc, Mutex};

use hol_workloads::WakeCallback;

/// The flows that other flows have woken since the last call of [`take_woken`](Self::take_woken).
#[derive(Debug, Clone, Default)]
pub(crate) struct WakeUps(Arc<Mutex<Vec<usize>>>);

impl WakeUps {
    /// Returns the callback that wakes a flow.
    pub(crate) fn callback(&self, running_flow: usize) -> WakeCallback {
        let Self(take_woken) = self.clone();
        Box::new(move || {
            take_woken.lock().expect("no code panics while it holds the lock").push(running_flow);
        })
    }

    /// Returns the flows that were woken since the last call.
    pub(crate) fn take_woken(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().expect("no code panics while it holds the lock"))
    }
}
