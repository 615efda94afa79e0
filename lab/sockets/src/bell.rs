//! Wakes a run because an application on another thread has left something for one of its own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Readable from when it is rung until it is silenced.
#[derive(Debug, Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// One that is silent.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Rings it, from any thread.
    pub fn ringer(&self) -> Box<dyn Fn() + Send> {
        let Self(file) = self.clone();
        Box::new(move || {
            // It fails only where it has been rung 2^64 times.
            let _ = rustix::io::write(&*file, &1u64.to_ne_bytes());
        })
    }

    /// It has been heard.
    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
