//! A connection's socket and what waits to be sent on it, whatever the protocol.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use hol_simco::{Framing, Message};

/// One end of a connection that carries messages.
pub(crate) trait Line: AsFd + fmt::Debug + Send {
    /// How it carries them.
    fn framing(&self) -> Framing;

    /// Reads once.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Heard>;

    /// Puts a message behind those that wait.
    fn push(&mut self, message: &Message);

    /// Octets that wait.
    fn waiting(&self) -> usize;

    /// Sends what the kernel takes; returns how many octets that were.
    fn flush(&mut self) -> io::Result<usize>;

    /// Says that nothing more will be sent.
    fn finish(&self) -> io::Result<()>;
}

/// What reading gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// So many octets of the buffer.
    Octets(usize),
    /// Nothing yet.
    Nothing,
    /// The other side sends no more.
    End,
}
