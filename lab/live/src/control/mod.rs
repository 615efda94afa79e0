//! The channel between two hosts: a TCP connection on which both prove that they know a shared secret, with a MAC on every message.

mod frame;
mod handshake;
mod message;

#[cfg(test)]
pub(crate) use frame::MAX_MESSAGE;
pub(crate) use frame::{Inbox, Outbox, hmac};
pub(crate) use handshake::authenticate;
pub(crate) use message::{HostDescription, LinkCounters, MAX_SAMPLES, Reply, Request, RunDescription};

use std::io;

/// Why the control channel cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A system call failed.
    #[error("{0}")]
    Io(io::Error),
    /// No message arrived before the timeout.
    #[error("the other host sent no message for 10 s; check the host and the path to it")]
    Timeout,
    /// The other side closed the channel, perhaps within a message.
    #[error("the other host closed the control channel")]
    Closed,
    /// A message exceeds the maximum length.
    #[error("a control message has {0} octets, but the maximum is {1}; lower `messages`")]
    TooLong(usize, usize),
    /// The HMAC is wrong, or the message is out of sequence.
    #[error("a control message is forged or repeated; run the command again")]
    Forged,
    /// A message cannot be parsed.
    #[error("cannot parse a control message: {0}")]
    Malformed(String),
    /// The other side's program has another version.
    #[error("the other host has hol {theirs}, but this one {ours}; install the same version on both")]
    Version {
        /// The version of the other side's program.
        theirs: String,
        /// The version of this program.
        ours: String,
    },
    /// The secrets differ.
    #[error(
        "the secrets of the two hosts differ; give both the same secret with --secret-file or HOL_LIVE_SECRET"
    )]
    Secret,
    /// The system provides no random numbers.
    #[error("cannot get random numbers from the operating system: {0}")]
    Randomness(String),
}

impl From<io::Error> for ControlError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}
