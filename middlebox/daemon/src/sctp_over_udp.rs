//! SCTP in UDP datagrams, by our own endpoint: each user message is one SIMCO message, as over the kernel's SCTP.
//! RFC 6951.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use bytes::Bytes;
use hol_base::Time;
use hol_sctp_udp::{Association, AssociationEnd, Packet, PortSocket, Role, UdpPath};
use hol_simco::{Framing, Header, Message, PAYLOAD_PROTOCOL};

use crate::message_transport::{MessageTransport, ReadOutcome};

/// An agent's association of SCTP over UDP, which shares its socket with the other associations of the port.
#[derive(Debug)]
pub(crate) struct SctpOverUdp {
    association: Association,
    socket: Arc<PortSocket>,
    path: UdpPath,
    /// Messages for which the association's send buffer has no room, with their streams.
    waiting: VecDeque<(u16, Bytes)>,
    octets: usize,
    /// Octets that the agent has acknowledged since the last flush.
    acknowledged: usize,
    /// Whether the agent has sent part of a message longer than any request. The part was passed on as an invalid
    /// message.
    has_endless_message: bool,
    is_finishing: bool,
}

impl SctpOverUdp {
    /// Maximum number of chunks and messages in memory. An agent that respects the receive window reaches this number
    /// only with messages shorter than SIMCO's header.
    const MAX_PIECES: usize = Role::Middlebox.receive_buffer() / 8;
    /// Maximum number of octets of memory that a chunk or message needs in addition to its user data.
    const PIECE_OVERHEAD: usize = 200;

    pub fn new(association: Association, socket: Arc<PortSocket>, path: UdpPath) -> Self {
        let mut line = Self {
            association,
            socket,
            path,
            waiting: VecDeque::new(),
            octets: 0,
            acknowledged: 0,
            has_endless_message: false,
            is_finishing: false,
        };
        line.transmit();
        line
    }

    fn transmit(&mut self) {
        while let Some(datagram) = self.association.next_datagram() {
            self.socket.send(&datagram, self.path);
        }
    }

    /// Returns true if no more messages can be read.
    fn is_at_end(&self) -> bool {
        self.association.end().is_some() || self.association.has_peer_closed() && !self.is_finishing
    }

    fn begins_endless_message(&self) -> bool {
        !self.has_endless_message && self.association.held_data().partial_octets > Header::LONGEST_REQUEST
    }

    fn end_error(&self) -> io::Error {
        match self.association.end() {
            Some(AssociationEnd::Failed(reason)) => io::Error::other(reason.text()),
            Some(AssociationEnd::Closed) | None => io::ErrorKind::NotConnected.into(),
        }
    }
}

impl MessageTransport for SctpOverUdp {
    fn framing(&self) -> Framing {
        Framing::Messages
    }

    fn read(&mut self, _: &mut [u8]) -> io::Result<ReadOutcome> {
        if let Some(message) = self.association.next_message() {
            self.transmit();
            return Ok(ReadOutcome::Octets(message));
        }
        match self.association.end() {
            Some(AssociationEnd::Failed(_)) => Err(self.end_error()),
            Some(AssociationEnd::Closed) => Ok(ReadOutcome::End),
            None if self.is_at_end() => Ok(ReadOutcome::End),
            // An endless message is passed on as an empty one: both are invalid.
            None if self.begins_endless_message() => {
                self.has_endless_message = true;
                Ok(ReadOutcome::Octets(Bytes::new()))
            }
            None => Ok(ReadOutcome::Nothing),
        }
    }

    fn has_buffered_data(&self) -> bool {
        self.association.has_message() || self.is_at_end()
    }

    fn push(&mut self, message: &Message) {
        let octets = message.to_bytes();
        self.octets += octets.len();
        let stream = message.tid.0 % u32::from(self.association.streams().max(1));
        self.waiting.push_back((stream as u16, octets));
    }

    /// Returns the number of octets that the agent has not acknowledged. They are in the daemon's memory, because the
    /// kernel does not buffer them as it does for TCP.
    fn unsent_octets(&self) -> usize {
        self.octets + self.association.unacknowledged()
    }

    fn needs_write(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends as many messages as the association has room for. Returns the number of octets acknowledged since the last
    /// flush.
    fn flush(&mut self) -> io::Result<usize> {
        if self.association.has_ended() {
            return Err(self.end_error());
        }
        while let Some((stream, octets)) = self.waiting.front() {
            if !self.association.queue(*stream, PAYLOAD_PROTOCOL, octets.clone()) {
                break;
            }
            self.octets -= octets.len();
            self.waiting.pop_front();
        }
        self.association.flush();
        self.transmit();
        Ok(std::mem::take(&mut self.acknowledged))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.is_finishing = true;
        self.association.close();
        self.transmit();
        Ok(())
    }

    fn held(&self) -> usize {
        let held = self.association.held_data();
        self.unsent_octets() + held.octets + Self::PIECE_OVERHEAD * held.pieces
    }

    fn shares_socket(&self) -> bool {
        true
    }

    fn advance(&mut self, now: Time) {
        self.association.advance(now);
        self.transmit();
    }

    fn wake_at(&self) -> Time {
        self.association.wake_at()
    }

    fn receive(&mut self, now: Time, path: UdpPath, packet: Packet) {
        // RFC 6951 section 5.4: packets are sent to the port from which the last valid one came.
        self.path = path;
        let before = self.association.unacknowledged();
        self.association.receive(now, packet);
        self.acknowledged += before.saturating_sub(self.association.unacknowledged());
        if self.association.held_data().pieces > Self::MAX_PIECES {
            self.association.abort();
        }
        self.transmit();
    }
}

impl AsFd for SctpOverUdp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for SctpOverUdp {
    /// Aborts the association if it has not ended, as the kernel does when a connection with unread data is closed.
    fn drop(&mut self) {
        self.association.abort();
        self.transmit();
    }
}
