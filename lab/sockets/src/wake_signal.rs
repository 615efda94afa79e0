//! Wakes a run when an application on another thread has work for an application of the run.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// A signal that wakes a run. Its file descriptor is readable from when the signal is set until it is cleared.
#[derive(Debug, Clone)]
pub struct WakeSignal(Arc<OwnedFd>);

impl WakeSignal {
    /// Creates a signal that is not set.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Returns a function that sets the signal, from any thread.
    pub fn waker(&self) -> Box<dyn Fn() + Send> {
        let Self(file) = self.clone();
        Box::new(move || {
            // Fails only after 2^64 signals.
            let _ = rustix::io::write(&*file, &1u64.to_ne_bytes());
        })
    }

    /// Clears the signal after the run has woken.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for WakeSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
