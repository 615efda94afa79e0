//! What is ready: epoll with tokens of our own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::End;

/// Waits for sockets and for the alarm.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// What may become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Alarm,
    /// Another thread wants the run to end.
    Stop,
    /// The server's listening socket.
    Listener,
    /// The socket of a connection of an end.
    Connection(End, u16),
}

/// What is to be said about a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    /// That it can be read.
    Read,
    /// That it can be read or written.
    ReadWrite,
}

/// Something is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) token: Token,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

impl Poller {
    const AT_ONCE: usize = 64;

    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    pub(crate) fn add(&self, socket: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, token.data(), interest.flags())?)
    }

    pub(crate) fn change(&self, socket: impl AsFd, token: Token, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, token.data(), interest.flags())?)
    }

    /// Waits until something is ready and puts it into `ready`.
    pub(crate) fn wait(&self, ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; Self::AT_ONCE];
        let count = loop {
            match epoll::wait(&self.epoll, &mut events[..], None) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        ready.clear();
        ready.extend(events[..count].iter().map(|event| Ready::new(event.flags, event.data)));
        Ok(())
    }
}

impl Ready {
    fn new(flags: EventFlags, data: EventData) -> Self {
        // An error shows itself to whoever reads or writes next.
        let over = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        Self {
            token: Token::of(data),
            readable: over || flags.contains(EventFlags::IN),
            writable: over || flags.contains(EventFlags::OUT),
        }
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Read => EventFlags::IN,
            Self::ReadWrite => EventFlags::IN | EventFlags::OUT,
        }
    }
}

impl Token {
    fn data(self) -> EventData {
        EventData::new_u64(match self {
            Self::Alarm => 0,
            Self::Listener => 1,
            Self::Stop => 2,
            Self::Connection(End::Client, index) => 4 + 2 * u64::from(index),
            Self::Connection(End::Server, index) => 5 + 2 * u64::from(index),
        })
    }

    fn of(data: EventData) -> Self {
        match data.u64() {
            0 => Self::Alarm,
            1 => Self::Listener,
            2 => Self::Stop,
            other => {
                let end = if other.is_multiple_of(2) { End::Client } else { End::Server };
                Self::Connection(end, ((other - 4) / 2) as u16)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was_given() {
        let connections = [0, 1, u16::MAX]
            .into_iter()
            .flat_map(|index| [End::Client, End::Server].map(|end| Token::Connection(end, index)));
        for token in connections.chain([Token::Alarm, Token::Listener, Token::Stop]) {
            assert_eq!(Token::of(token.data()), token);
        }
    }
}
