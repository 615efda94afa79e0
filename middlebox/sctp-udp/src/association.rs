//! One association: messages, datagrams and time in; messages and datagrams out.

use std::collections::VecDeque;
use std::net::IpAddr;

use bytes::Bytes;
use hol_base::Time;
use hol_sctp::transport::{Command, Endpoint as _, Event, Failure, Input, Message, Output, Reliability};
use hol_sctp::wire::Transport;
use hol_sctp::wire::sctp::Packet;
use hol_sctp::{Endpoint, HeldData};

use crate::path::UdpPath;
use crate::{Role, random};

/// One end of an association of SCTP over UDP.
///
/// After each call send what [`next_datagram`](Self::next_datagram) returns, and call [`advance`](Self::advance) at the
/// time that [`wake_at`](Self::wake_at) returns.
#[derive(Debug)]
pub struct Association {
    endpoint: Endpoint,
    peer: IpAddr,
    local: IpAddr,
    /// The peer's SCTP port.
    peer_port: u16,
    now: Time,
    wake_at: Time,
    /// The next message for the application. Until the application has read it, further messages stay in the endpoint,
    /// and the receive window closes.
    message: Option<Bytes>,
    /// Whether received messages are dropped, because this end has closed the association.
    is_discarding: bool,
    datagrams: VecDeque<Bytes>,
    has_peer_closed: bool,
    end: Option<AssociationEnd>,
}

/// How an association ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssociationEnd {
    /// Both ends have shut the association down. RFC 9260 section 9.2.
    Closed,
    /// The association was aborted, or the peer became unreachable.
    Failed(Failure),
}

impl Association {
    /// Opens an association with SCTP port `peer_port` of the peer, and sends INIT.
    pub fn connect(now: Time, path: UdpPath, peer_port: u16) -> Self {
        /// The first dynamic port number. RFC 6335 section 6.
        const FIRST_DYNAMIC: u16 = 49_152;
        let mut rng = random::secure_rng();
        let port = FIRST_DYNAMIC + rng.below(u64::from(u16::MAX - FIRST_DYNAMIC) + 1) as u16;
        let (config, remote) = (Role::Agent.config(), vec![path.peer.ip()]);
        let endpoint = Endpoint::connect(config, vec![path.local], port, remote, peer_port, rng);
        let mut association = Self::new(now, path, peer_port, endpoint);
        association.command(Command::Connect);
        association
    }

    pub(crate) fn new(now: Time, path: UdpPath, peer_port: u16, endpoint: Endpoint) -> Self {
        let mut association = Self {
            endpoint,
            peer: path.peer.ip(),
            local: path.local,
            peer_port,
            now,
            wake_at: Time::MAX,
            message: None,
            is_discarding: false,
            datagrams: VecDeque::new(),
            has_peer_closed: false,
            end: None,
        };
        association.poll();
        association
    }

    /// Returns the peer's SCTP port.
    pub fn peer_port(&self) -> u16 {
        self.peer_port
    }

    /// Returns this end's verification tag.
    pub fn verification_tag(&self) -> u32 {
        self.endpoint.verification_tag()
    }

    /// Returns the number of outgoing streams.
    pub fn streams(&self) -> u16 {
        self.endpoint.outbound_streams()
    }

    /// Returns whether the association is established, so that messages can be exchanged.
    pub fn is_established(&self) -> bool {
        self.endpoint.state_name() == "ESTABLISHED"
    }

    /// Returns whether the peer will send no more messages.
    pub fn has_peer_closed(&self) -> bool {
        self.has_peer_closed
    }

    /// Returns how the association ended; `None` if it has not ended, or while messages that arrived before the end
    /// have not been read.
    pub fn end(&self) -> Option<AssociationEnd> {
        self.end
    }

    /// Returns whether the association has ended, even if messages that arrived before have not been read.
    pub fn has_ended(&self) -> bool {
        self.endpoint.state_name() == "CLOSED"
    }

    /// Handles a packet from the peer.
    pub fn receive(&mut self, now: Time, packet: Packet) {
        self.now = now;
        let packet = hol_sctp::wire::Packet::new(self.peer, self.local, packet);
        self.endpoint.handle(now, Input::Packet(packet));
        self.poll();
    }

    /// Sets the time, and handles the timers that have expired.
    pub fn advance(&mut self, now: Time) {
        self.now = now;
        if self.wake_at <= now {
            self.poll();
        }
    }

    /// Returns when the next timer expires; [`Time::MAX`] if none is running.
    pub fn wake_at(&self) -> Time {
        self.wake_at
    }

    /// Returns the next datagram to send; `None` if there is none.
    pub fn next_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.pop_front()
    }

    /// Queues a message if there is room; returns whether there was. Messages are sent by [`flush`](Self::flush), so
    /// that they can share packets.
    pub fn queue(&mut self, stream: u16, payload_protocol: u32, payload: Bytes) -> bool {
        let has_room = self.endpoint.can_send(payload.len());
        if has_room {
            let (unordered, reliability) = (false, Reliability::Full);
            self.endpoint
                .queue(self.now, Message { stream, unordered, reliability, ppid: payload_protocol, payload });
        }
        has_room
    }

    /// Sends the queued messages.
    pub fn flush(&mut self) {
        self.endpoint.send_queued(self.now);
        self.poll();
    }

    /// Returns whether a received message can be read.
    pub fn has_message(&self) -> bool {
        self.message.is_some()
    }

    /// Returns the next received message; `None` if there is none.
    pub fn next_message(&mut self) -> Option<Bytes> {
        let message = self.message.take()?;
        self.command(Command::Read(true));
        Some(message)
    }

    /// Returns the number of octets in messages that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.endpoint.send_buffer_used()
    }

    /// Returns the amount of received user data in memory.
    pub fn held_data(&self) -> HeldData {
        let held = self.endpoint.held_data();
        let length = self.message.as_ref().map_or(0, Bytes::len);
        HeldData { octets: held.octets + length, pieces: held.pieces + usize::from(length > 0), ..held }
    }

    /// Shuts the association down after the queued messages have been sent; messages that arrive meanwhile are dropped.
    /// RFC 9260 section 9.2.
    pub fn close(&mut self) {
        self.is_discarding = true;
        self.message = None;
        self.endpoint.handle(self.now, Input::Command(Command::Read(true)));
        self.command(Command::Close);
    }

    /// Aborts the association. RFC 9260 section 9.1.
    pub fn abort(&mut self) {
        self.command(Command::Abort);
    }

    fn command(&mut self, command: Command) {
        self.endpoint.handle(self.now, Input::Command(command));
        self.poll();
    }

    /// Carries out the endpoint's actions until its next action is to wait.
    fn poll(&mut self) {
        loop {
            match self.endpoint.poll(self.now) {
                Output::Transmit(packet) => {
                    let Transport::Sctp(packet) = packet.transport else { unreachable!("it speaks SCTP") };
                    self.datagrams.push_back(packet.to_bytes());
                }
                Output::Event(Event::Received(_)) if self.is_discarding => {}
                Output::Event(Event::Received(received)) => {
                    self.message = Some(received.payload);
                    self.endpoint.handle(self.now, Input::Command(Command::Read(false)));
                }
                Output::Event(Event::PeerClosed) => self.has_peer_closed = true,
                Output::Event(Event::Closed) => self.end = Some(AssociationEnd::Closed),
                Output::Event(Event::Failed { reason }) => self.end = Some(AssociationEnd::Failed(reason)),
                Output::Event(_) => {}
                Output::Wait(until) => {
                    self.wake_at = until.unwrap_or(Time::MAX);
                    return;
                }
            }
        }
    }
}
