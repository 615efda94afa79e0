//! A connection's socket and what waits to be sent on it, whatever the protocol.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use bytes::Bytes;
use hol_simco::{Framing, Message};

/// One end of a connection that carries messages.
pub(crate) trait Line: AsFd + fmt::Debug + Send {
    /// How it carries them.
    fn framing(&self) -> Framing;

    /// Reads once. `buffer` is scratch space.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Heard>;

    /// True if there is something to read of which the socket knows nothing any more.
    fn has_rest(&self) -> bool {
        false
    }

    /// Puts a message behind those that wait.
    fn push(&mut self, message: &Message);

    /// Octets that wait.
    fn waiting(&self) -> usize;

    /// True if it has something to send, though it may be none of the messages.
    fn is_to_write(&self) -> bool {
        self.waiting() > 0
    }

    /// Sends what the kernel takes; returns how many octets that were.
    fn flush(&mut self) -> io::Result<usize>;

    /// Says that nothing more will be sent.
    fn finish(&mut self) -> io::Result<()>;
}

/// What reading gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Octets as the line's framing has them.
    Octets(Bytes),
    /// Nothing to hear, which has cost so much in units of about a nanosecond.
    Work(u64),
    /// The line is protected from now on, and the other side has proved to have these names.
    Names(Vec<String>),
    /// Nothing whole for now.
    Nothing,
    /// The other side sends no more.
    End,
}
