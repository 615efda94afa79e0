//! Signals as a readable file.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// A file descriptor that is readable when one of its signals has arrived. It must be created before any thread,
/// because threads inherit the signal mask.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Creates the file descriptor for SIGTERM and SIGINT, which stop the daemon.
    pub fn for_stop() -> io::Result<Self> {
        Self::catch([Signal::SIGTERM, Signal::SIGINT])
    }

    /// Creates the file descriptor for SIGHUP, which makes the daemon reload policy and secrets.
    pub fn for_reload() -> io::Result<Self> {
        Self::catch([Signal::SIGHUP])
    }

    fn catch(signals: impl IntoIterator<Item = Signal>) -> io::Result<Self> {
        let signals: SigSet = signals.into_iter().collect();
        signals.thread_block()?;
        Ok(Self(SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// Reads the pending signals; afterwards the file descriptor is no longer readable.
    pub(crate) fn take(&mut self) -> io::Result<()> {
        while self.0.read_signal()?.is_some() {}
        Ok(())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
