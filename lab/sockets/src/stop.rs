//! Stops runs on other threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hol_base::Duration;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A stop signal. Once it has been raised, its file descriptor is readable in every run that has it.
#[derive(Debug)]
pub struct StopSignal(OwnedFd);

impl StopSignal {
    /// Creates a signal that is not raised.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC)?))
    }

    /// Raises the signal, which stops all runs that have it, even those that have not started yet.
    pub fn raise(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &1u64.to_ne_bytes())?;
        Ok(())
    }

    /// Waits until `time` has passed or the signal is raised.
    pub fn wait(&self, time: Duration) -> io::Result<()> {
        const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;
        let nanos = time.as_nanos();
        let time = Timespec {
            tv_sec: (nanos / NANOSECONDS_PER_SECOND) as i64,
            tv_nsec: (nanos % NANOSECONDS_PER_SECOND) as i64,
        };
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&time))?;
        Ok(())
    }
}

impl AsFd for StopSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
