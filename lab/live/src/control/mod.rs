//! The channel between two hosts: a TCP connection with mutual proof of a shared secret and a MAC on every
//! message.

mod frame;
mod handshake;
mod message;

#[cfg(test)]
pub(crate) use frame::LONGEST;
pub(crate) use frame::{Inbox, Outbox, proof};
pub(crate) use handshake::greet;
pub(crate) use message::{HostDescription, LinkCounters, MOST_SEEN, Plan, Reply, Request};

use std::io;

/// Why the control channel cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The system says so.
    #[error("{0}")]
    Io(io::Error),
    /// Nothing has come for a while.
    #[error("no message from the other host for 10 s; check the host and the path")]
    Silent,
    /// The other side has closed it, perhaps in the middle of a word.
    #[error("the other host closed the control channel")]
    Closed,
    /// More than anybody has to say.
    #[error("control message too long: {0} octets, maximum {1}; run fewer messages")]
    TooLong(usize, usize),
    /// It is not from who knows the secret, or not in its place.
    #[error("a message is forged or repeated")]
    Forged,
    /// It means nothing.
    #[error("cannot parse a message: {0}")]
    Nonsense(String),
    /// The other side's program is another one.
    #[error("the other host has hol {theirs}, this one {ours}; install the same version on both")]
    Version {
        /// Its version.
        theirs: String,
        /// That of this program.
        ours: String,
    },
    /// The secrets differ.
    #[error(
        "the secrets of the two hosts differ; give both the same secret with --secret-file or HOL_LIVE_SECRET"
    )]
    Secret,
    /// There is no randomness.
    #[error("no random numbers available: {0}")]
    Randomness(String),
}

impl From<io::Error> for ControlError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent,
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}
