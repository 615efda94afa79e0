//! What is ready: epoll with tokens of our own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use hol_base::Duration;
use hol_simco::SessionId;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// Waits for sockets and for orders.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// What may become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// The daemon is to stop.
    Stop,
    /// It is to read its policy and its secrets again.
    Reload,
    /// A listening socket, by its number.
    Listener(u32),
    Connection(SessionId),
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    /// That there is something to read.
    Read,
    /// That there is room to write.
    Write,
}

impl Poller {
    const AT_ONCE: usize = 256;

    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    pub fn add(&self, source: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, token.data(), interest.flags())?)
    }

    pub fn change(&self, source: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, token.data(), interest.flags())?)
    }

    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Waits until something is ready, or so long, or for a signal, and puts what is ready into `ready`.
    pub fn wait(&self, patience: Option<Duration>, ready: &mut Vec<Token>) -> io::Result<()> {
        let timeout = patience.map(|patience| Timespec {
            tv_sec: (patience.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (patience.as_nanos() % 1_000_000_000) as i64,
        });
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; Self::AT_ONCE];
        let count = match epoll::wait(&self.epoll, &mut events[..], timeout.as_ref()) {
            Err(Errno::INTR) => 0,
            other => other?,
        };
        ready.clear();
        ready.extend(events[..count].iter().map(|event| Token::of(event.data)));
        Ok(())
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Read => EventFlags::IN,
            Self::Write => EventFlags::OUT,
        }
    }
}

impl Token {
    const LISTENERS: u64 = 1 << 32;
    const STOP: u64 = 2 << 32;
    const RELOAD: u64 = 3 << 32;

    fn data(self) -> EventData {
        EventData::new_u64(match self {
            Self::Connection(id) => id.0.into(),
            Self::Listener(number) => Self::LISTENERS + u64::from(number),
            Self::Stop => Self::STOP,
            Self::Reload => Self::RELOAD,
        })
    }

    fn of(data: EventData) -> Self {
        match data.u64() {
            Self::STOP => Self::Stop,
            Self::RELOAD => Self::Reload,
            listener @ Self::LISTENERS.. => Self::Listener(listener as u32),
            connection => Self::Connection(SessionId(connection as u32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was_given() {
        let numbers = [0, 1, u32::MAX];
        let connections = numbers.map(|number| Token::Connection(SessionId(number)));
        for token in
            numbers.map(Token::Listener).into_iter().chain(connections).chain([Token::Stop, Token::Reload])
        {
            assert_eq!(Token::of(token.data()), token);
        }
    }
}
