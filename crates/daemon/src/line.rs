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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Octets as the line's framing has them.
    Octets(Bytes),
    /// Nothing whole for now.
    Nothing,
    /// The other side sends no more.
    End,
}
