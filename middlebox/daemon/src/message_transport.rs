//! A connection's socket with its send queue, for any transport.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use bytes::Bytes;
use hol_base::Time;
use hol_sctp_udp::{Packet, UdpPath};
use hol_simco::{Framing, Message};

/// One end of a connection with an agent, over which messages are sent and received.
pub(crate) trait MessageTransport: AsFd + fmt::Debug + Send {
    /// Returns how messages are framed on this transport.
    fn framing(&self) -> Framing;

    /// Reads once from the socket. `buffer` is scratch space.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<ReadOutcome>;

    /// Returns true if data are buffered for which the poller will not report the socket as readable.
    fn has_buffered_data(&self) -> bool {
        false
    }

    /// Appends a message to the send queue.
    fn push(&mut self, message: &Message);

    /// Returns the number of octets in the send queue.
    fn unsent_octets(&self) -> usize;

    /// Returns true if there is something to send, including the transport's own data.
    fn needs_write(&self) -> bool {
        self.unsent_octets() > 0
    }

    /// Sends as many octets of the send queue as the kernel accepts; returns their number.
    fn flush(&mut self) -> io::Result<usize>;

    /// Shuts down the sending direction.
    fn finish(&mut self) -> io::Result<()>;

    /// Returns how many octets of memory the connection needs for data in both directions, without memory in the
    /// kernel.
    fn held(&self) -> usize {
        self.unsent_octets()
    }

    /// Returns true if the socket belongs to a port that many connections share. The poller then watches the port
    /// instead of each connection.
    fn shares_socket(&self) -> bool {
        false
    }

    /// Lets the transport act on its timers that have expired by `now`.
    fn advance(&mut self, _now: Time) {}

    /// Returns when the transport's next timer expires; [`Time::MAX`] if none is running.
    fn wake_at(&self) -> Time {
        Time::MAX
    }

    /// Handles a packet for this connection that has arrived at a shared socket.
    fn receive(&mut self, _now: Time, _path: UdpPath, _packet: Packet) {
        unreachable!("only connections with a shared socket are given packets")
    }
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// The read returned octets, with the framing of the transport.
    Octets(Bytes),
    /// The read returned no octets, but had this cost, in units of about a nanosecond of processor time.
    Work(u64),
    /// The connection is now encrypted. The peer's certificate contains these names; `None` if the peer has no
    /// certificate.
    Names(Option<Vec<String>>),
    /// The data are not complete yet.
    Nothing,
    /// The peer has shut down its sending direction.
    End,
}
