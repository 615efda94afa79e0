//! Signals, as something that becomes readable.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Readable when one of some signals has come. Catch them before any thread is started: threads inherit what is caught.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// SIGTERM and SIGINT: the daemon is to stop.
    pub fn stop() -> io::Result<Self> {
        Self::catch([Signal::SIGTERM, Signal::SIGINT])
    }

    /// SIGHUP: it is to read its policy and its secrets again.
    pub fn reload() -> io::Result<Self> {
        Self::catch([Signal::SIGHUP])
    }

    fn catch(signals: impl IntoIterator<Item = Signal>) -> io::Result<Self> {
        let signals: SigSet = signals.into_iter().collect();
        signals.thread_block()?;
        Ok(Self(SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// Takes the signals that have come, so that it is readable no more.
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
