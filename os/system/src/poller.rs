//! Waits for files with epoll(7); the caller chooses the tokens.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};

use hol_base::Duration;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// Waits until files are ready: sockets, timers, signals. Each file is identified by a token of type
/// `T`.
pub struct Poller<T> {
    epoll: OwnedFd,
    tokens: PhantomData<T>,
}

/// The events for which a file is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Wait until the file can be read (or has an error).
    Read,
    /// Wait until the file can be written.
    Write,
    /// Wait until the file can be read or written.
    ReadWrite,
}

/// A file that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyFile<T> {
    /// The token that was given to [`Poller::add`].
    pub token: T,
    /// Whether the file can be read, or has an error that the next read returns.
    pub readable: bool,
    /// Whether the file can be written, or has an error that the next write returns.
    pub writable: bool,
}

/// A buffer for the events of one wait.
pub struct Events<T> {
    events: Vec<Event>,
    tokens: PhantomData<T>,
}

impl<T: From<u64> + Into<u64>> Poller<T> {
    /// Creates a poller that watches nothing.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, tokens: PhantomData })
    }

    /// Watches a file from now on, until it is [removed](Self::remove) or closed.
    pub fn add(&self, file: impl AsFd, token: T, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, file, EventData::new_u64(token.into()), interest.flags())?)
    }

    /// Changes the events for which the file is watched.
    pub fn change(&self, file: impl AsFd, token: T, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, file, EventData::new_u64(token.into()), interest.flags())?)
    }

    /// Stops watching the file.
    pub fn remove(&self, file: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, file)?)
    }

    /// Waits until a file is ready, the time has passed, or a signal arrives, and stores ready files in
    /// `events`.
    pub fn wait(&self, timeout: Option<Duration>, events: &mut Events<T>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: (timeout.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (timeout.as_nanos() % 1_000_000_000) as i64,
        });
        events.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut events.events), timeout.as_ref()) {
            Err(error) if error != Errno::INTR => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl<T: From<u64>> Events<T> {
    /// Creates a buffer for at most `max` events.
    pub fn with_capacity(max: usize) -> Self {
        Self { events: Vec::with_capacity(max), tokens: PhantomData }
    }

    /// Returns the files that are ready.
    pub fn iter(&self) -> impl Iterator<Item = ReadyFile<T>> {
        self.events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            let over = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            ReadyFile {
                token: T::from(data.u64()),
                readable: over || flags.contains(EventFlags::IN),
                writable: over || flags.contains(EventFlags::OUT),
            }
        })
    }

    /// Returns whether no file is ready.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Read => EventFlags::IN,
            Self::Write => EventFlags::OUT,
            Self::ReadWrite => EventFlags::IN | EventFlags::OUT,
        }
    }
}

impl<T> fmt::Debug for Poller<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").field("epoll", &self.epoll).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_file_is_reported_ready_for_its_interest() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let poller = Poller::<u64>::new().unwrap();
        let mut events = Events::with_capacity(2);
        let mut ready = || {
            poller.wait(Some(Duration::ZERO), &mut events).unwrap();
            let ready: Vec<_> = events.iter().map(|one| (one.token, one.readable, one.writable)).collect();
            assert_eq!(events.is_empty(), ready.is_empty());
            ready
        };
        poller.add(&theirs, 7, Interest::Read).unwrap();
        assert_eq!(ready(), []);
        ours.write_all(b"!").unwrap();
        assert_eq!(ready(), [(7, true, false)]);
        poller.change(&theirs, 8, Interest::Write).unwrap();
        assert_eq!(ready(), [(8, false, true)]);
        poller.change(&theirs, 9, Interest::ReadWrite).unwrap();
        assert_eq!(ready(), [(9, true, true)]);
        poller.remove(&theirs).unwrap();
        assert_eq!(ready(), []);
    }
}
