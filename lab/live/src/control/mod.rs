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

/// Why a control channel between two hosts failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A system call failed.
    #[error("{0}")]
    Io(io::Error),
    /// No message arrived before the timeout.
    #[error("the other host sent no message for 10 s; check the host and the path to it")]
    Timeout,
    /// The other host closed the channel, perhaps in the middle of a message.
    #[error("the other host closed the control channel")]
    Closed,
    /// A message is too long; contains its length and the maximum length.
    #[error("a control message has {0} octets, but the maximum is {1}; lower `messages`")]
    TooLong(usize, usize),
    /// The HMAC of a message is wrong, or the message is out of sequence.
    #[error("a control message is forged or repeated; run the command again")]
    Forged,
    /// A message cannot be parsed.
    #[error("cannot parse a control message: {0}")]
    Malformed(String),
    /// The other host runs another version of the program.
    #[error("the other host has hol {theirs}, but this one {ours}; install the same version on both")]
    Version {
        /// The version of the other host's program.
        theirs: String,
        /// The version of the program on this host.
        ours: String,
    },
    /// The secrets of the two hosts differ.
    #[error(
        "the secrets of the two hosts differ; give both the same secret with --secret-file or HOL_LIVE_SECRET"
    )]
    Secret,
    /// The operating system provides no random numbers.
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
