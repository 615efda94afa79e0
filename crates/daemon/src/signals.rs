//! SIGTERM, SIGINT and SIGHUP, as something that becomes readable.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Readable when the daemon is asked to stop. Rules survive a restart, so there is no reloading.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Catches the signals from now on. Call it before any thread is started: threads inherit what is caught.
    pub fn catch() -> io::Result<Self> {
        let stop: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect();
        stop.thread_block()?;
        Ok(Self(SignalFd::with_flags(&stop, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
