//! A connection's socket with its send queue, for any protocol.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use bytes::Bytes;
use hol_simco::{Framing, Message};

/// One end of a connection that carries messages.
pub(crate) trait Line: AsFd + fmt::Debug + Send {
    /// Returns how messages are framed.
    fn framing(&self) -> Framing;

    /// Reads once. `buffer` is scratch space.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Heard>;

    /// Returns true if buffered data remain that the socket will not report.
    fn has_rest(&self) -> bool {
        false
    }

    /// Queues a message.
    fn push(&mut self, message: &Message);

    /// Returns the queued octets.
    fn waiting(&self) -> usize;

    /// Returns true if it has something to send, possibly other than messages.
    fn is_to_write(&self) -> bool {
        self.waiting() > 0
    }

    /// Sends what the kernel takes; returns the number of octets.
    fn flush(&mut self) -> io::Result<usize>;

    /// Shuts down the sending side.
    fn finish(&mut self) -> io::Result<()>;
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Octets, framed as the protocol does.
    Octets(Bytes),
    /// Nothing yet, at this cost in units of about a nanosecond.
    Work(u64),
    /// The connection is now encrypted, and the other side has authenticated with these names; `None` without a
    /// certificate.
    Names(Option<Vec<String>>),
    /// Nothing complete yet.
    Nothing,
    /// The other side sends no more.
    End,
}
