//! Wakes a run when an application on another thread has left work for one of its own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Readable from when it is rung until it is silenced.
#[derive(Debug, Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// Creates a silent bell.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Returns a function that rings it, from any thread.
    pub fn ringer(&self) -> Box<dyn Fn() + Send> {
        let Self(file) = self.clone();
        Box::new(move || {
            // Fails only after 2^64 rings.
            let _ = rustix::io::write(&*file, &1u64.to_ne_bytes());
        })
    }

    /// Silences the bell.
    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
