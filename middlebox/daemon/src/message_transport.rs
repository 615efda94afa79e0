//! A connection's socket with its send queue, for any transport.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use bytes::Bytes;
use hol_base::Time;
use hol_sctp_udp::{Packet, UdpPath};
use hol_simco::{Framing, Message};

/// One end of a connection that carries messages.
pub(crate) trait MessageTransport: AsFd + fmt::Debug + Send {
    /// Returns how messages are framed.
    fn framing(&self) -> Framing;

    /// Reads once. `buffer` is scratch space.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<ReadOutcome>;

    /// Returns true if buffered data remain that the poller will not report.
    fn has_buffered_data(&self) -> bool {
        false
    }

    /// Appends a message to the send queue.
    fn push(&mut self, message: &Message);

    /// Returns the number of queued octets.
    fn unsent_octets(&self) -> usize;

    /// Returns true if there is something to send, including data of the transport itself.
    fn needs_write(&self) -> bool {
        self.unsent_octets() > 0
    }

    /// Sends as many octets as the kernel accepts; returns their number.
    fn flush(&mut self) -> io::Result<usize>;

    /// Shuts down the sending side.
    fn finish(&mut self) -> io::Result<()>;

    /// Returns how many octets of memory the connection needs for data in either direction. The memory of the
    /// kernel does not count.
    fn held(&self) -> usize {
        self.unsent_octets()
    }

    /// Returns true if the socket belongs to a port with many connections. The poller then watches the port as a
    /// whole.
    fn shares_socket(&self) -> bool {
        false
    }

    /// Passes the current time to the transport, which acts on its timers that are due.
    fn advance(&mut self, _now: Time) {}

    /// Returns when the next timer of the transport is due; [`Time::MAX`] if none is running.
    fn wake_at(&self) -> Time {
        Time::MAX
    }

    /// Handles a packet that has arrived at a shared socket.
    fn receive(&mut self, _now: Time, _path: UdpPath, _packet: Packet) {
        unreachable!("only connections with a shared socket are given packets")
    }
}

/// What a read has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// Octets, framed as the transport does.
    Octets(Bytes),
    /// The read returned no octets yet, but had this cost, in units of about a nanosecond.
    Work(u64),
    /// The connection is now encrypted, and the peer has authenticated with these names; `None` without a
    /// certificate.
    Names(Option<Vec<String>>),
    /// No complete data yet.
    Nothing,
    /// The peer has closed its sending side.
    End,
}
