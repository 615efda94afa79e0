//! Userspace transports (SCTP and QUIC) over connected UDP sockets.
//!
//! Each end of a connection has its own socket. Nothing is fragmented. ICMP errors are ignored: RFC 9000
//! section 14.2.1.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use hol_base::Time;
use hol_quic::{EndpointOutput, OutgoingDatagram as Datagram};
use hol_scenario::Side;
use hol_transport::{Command, Event, ReceivedData};
use hol_wire::Ecn;
use hol_workloads::Outgoing;
use socket2::Socket;

use crate::datagrams::DatagramSocket;
use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::transceiver::{ConnectionFault, Opener, SendOutcome, SenderState, SocketEvent, Transceiver};

/// A transport in userspace whose packets are sent in UDP datagrams.
pub(crate) trait UserspaceTransport {
    /// The type of one end of a connection, without its socket.
    type Endpoint: Endpoint + 'static;

    /// Opens a socket at this address.
    fn open_socket(&self, site: &EndAddresses) -> Result<Socket, SocketsError>;

    /// Creates an endpoint whose datagrams go through `socket`.
    fn endpoint(&self, end: Side, socket: &Socket, peer: &EndAddresses) -> Self::Endpoint;

    /// Returns whether several datagrams are sent or read by one system call.
    fn is_batching(&self) -> bool;

    /// Returns whether messages are sent only at the call of [`Transceiver::send_all`].
    fn defers_sending(&self) -> bool;

    /// Returns the secrets with which the packets sent so far can be decrypted, as lines of a TLS key log.
    fn secrets(&self) -> String {
        String::new()
    }
}

/// One end of a connection, without its socket.
pub(crate) trait Endpoint {
    /// Returns the next action of the endpoint. After `Wait`, call it again at the next input or at the given time.
    fn poll(&mut self, now: Time) -> EndpointOutput<Datagram>;

    /// Handles a datagram that arrived.
    fn receive(&mut self, now: Time, octets: &[u8], ecn: Ecn);

    /// Handles a command of the application, such as to connect.
    fn handle_command(&mut self, now: Time, command: Command);

    /// Accepts a message and returns true if there is room; otherwise the endpoint reports when there is room.
    fn offer(&mut self, now: Time, message: &Outgoing) -> bool;

    /// Sends the messages that [`Self::offer`] accepted, if the endpoint deferred them.
    fn send_offered(&mut self, _now: Time) {}

    /// Stops the endpoint from sending if `holds`, because the socket's send buffer is full; otherwise lets it send
    /// again.
    fn hold(&mut self, _holds: bool) {}

    /// Passes the messages that `received` completes to `take`.
    fn deliver(
        &mut self,
        received: ReceivedData,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        take(SocketEvent::Message(received.stream, received.payload));
        Ok(())
    }

    /// Returns whether the connection has ended but the endpoint must still answer its peer.
    fn lingers(&self) -> bool;

    /// Returns the counters of the endpoint.
    fn counts(&self) -> SocketCounters;

    /// Returns the state of the endpoint as a sender; `None` if it has not sent data.
    fn sending(&self) -> Option<SenderState>;
}

/// Opens connections of a userspace transport.
pub(crate) struct UserspaceOpener<P>(pub(crate) P);

impl<P: UserspaceTransport> UserspaceOpener<P> {
    fn connection(&self, end: Side, socket: Socket, peer: &EndAddresses) -> Box<dyn Transceiver> {
        let endpoint = self.0.endpoint(end, &socket, peer);
        Box::new(Connection {
            datagrams: DatagramSocket::new(socket, peer.addresses[0], self.0.is_batching()),
            endpoint,
            defers_sending: self.0.defers_sending(),
            has_to_start: end == Side::Client,
            due: Time::MAX,
            events: VecDeque::new(),
        })
    }
}

impl<P: UserspaceTransport> Opener for UserspaceOpener<P> {
    fn listen(&self, server: &EndAddresses) -> Result<Socket, SocketsError> {
        self.0.open_socket(server)
    }

    fn connect(&self, client: &EndAddresses, server: &EndAddresses) -> Result<Socket, SocketsError> {
        DatagramSocket::connect(self.0.open_socket(client)?, server)
    }

    fn transceiver(&self, socket: Socket, peer: &EndAddresses) -> Box<dyn Transceiver> {
        self.connection(Side::Client, socket, peer)
    }

    fn dedicated_transceiver(&self, socket: Socket, peer: &EndAddresses) -> Box<dyn Transceiver> {
        self.connection(Side::Server, socket, peer)
    }

    fn accepts(&self) -> bool {
        false
    }

    fn has_timers(&self) -> bool {
        true
    }

    fn secrets(&self) -> String {
        self.0.secrets()
    }
}

/// One end of a connection of a userspace transport, with its UDP socket.
struct Connection<E> {
    datagrams: DatagramSocket,
    endpoint: E,
    /// Whether messages are sent only at the call of [`Transceiver::send_all`].
    defers_sending: bool,
    /// Whether this is the client's end, and the connection has not been started.
    has_to_start: bool,
    /// When the endpoint's next timer expires.
    due: Time,
    /// Events that have not been passed to the application yet.
    events: VecDeque<Event>,
}

impl<E: Endpoint> Connection<E> {
    /// Carries out the endpoint's actions until its next action is to wait.
    fn drive(&mut self, now: Time) -> io::Result<()> {
        self.flush()?;
        loop {
            match self.endpoint.poll(now) {
                EndpointOutput::Transmit(Datagram { octets, ecn }) => self.datagrams.push(octets, ecn),
                EndpointOutput::Event(event) => self.events.push_back(event),
                EndpointOutput::Wait(until) => {
                    self.due = until.unwrap_or(Time::MAX);
                    return self.flush();
                }
            }
        }
    }

    /// Sends waiting datagrams while the socket's send buffer has room.
    fn flush(&mut self) -> io::Result<()> {
        self.datagrams.flush()?;
        self.endpoint.hold(self.datagrams.is_full());
        Ok(())
    }

    /// Reports the endpoint's events to `take`.
    fn report_events(&mut self, take: &mut dyn FnMut(SocketEvent)) -> Result<(), ConnectionFault> {
        while let Some(event) = self.events.pop_front() {
            match event {
                // Events of a connection that was never open are not reported further.
                Event::Connected => {
                    take(SocketEvent::Up(0));
                    return Ok(());
                }
                Event::Received(received) => self.endpoint.deliver(received, take)?,
                Event::Writable => take(SocketEvent::Writable),
                Event::PeerClosed => take(SocketEvent::PeerClosed),
                Event::Closed => take(SocketEvent::Closed),
                Event::Failed { reason } => return Err(ConnectionFault::Protocol(reason.text())),
                Event::Path { address, status } => take(SocketEvent::Path(address, status)),
                // No protocol of this world reports abandoned messages.
                Event::Abandoned { .. } | Event::Reconfigured { .. } => {}
            }
        }
        Ok(())
    }
}

impl<E: Endpoint> Transceiver for Connection<E> {
    fn socket(&self) -> &Socket {
        &self.datagrams.socket
    }

    fn is_open_when_writable(&self) -> bool {
        false
    }

    fn error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    fn send(&mut self, message: &Outgoing, now: Time) -> io::Result<SendOutcome> {
        if !self.endpoint.offer(now, message) {
            return Ok(SendOutcome::WouldBlock);
        }
        if !self.defers_sending {
            self.drive(now)?;
        }
        Ok(SendOutcome::Complete)
    }

    fn send_all(&mut self, now: Time) -> io::Result<()> {
        if !self.defers_sending {
            return Ok(());
        }
        self.endpoint.send_offered(now);
        self.drive(now)
    }

    fn receive(
        &mut self,
        buffer: &mut [u8],
        now: Time,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        let Self { datagrams, endpoint, .. } = self;
        datagrams.receive_all(buffer, |octets, ecn| endpoint.receive(now, octets, ecn))?;
        self.drive(now)?;
        self.report_events(take)
    }

    fn handle_early_datagram(&mut self, octets: Bytes, ecn: Ecn) {
        self.datagrams.handle_early_datagram(octets, ecn);
    }

    fn shutdown(&mut self, now: Time) -> io::Result<()> {
        self.endpoint.handle_command(now, Command::Close);
        self.drive(now)
    }

    fn due(&self) -> Time {
        if self.has_to_start || !self.events.is_empty() { Time::ZERO } else { self.due }
    }

    fn handle_timer(&mut self, now: Time, take: &mut dyn FnMut(SocketEvent)) -> Result<(), ConnectionFault> {
        if std::mem::take(&mut self.has_to_start) {
            self.endpoint.handle_command(now, Command::Connect);
        }
        self.drive(now)?;
        self.report_events(take)
    }

    fn waits_for_room(&self) -> bool {
        self.datagrams.is_full()
    }

    fn set_reading(&mut self, reads: bool, now: Time) -> bool {
        self.endpoint.handle_command(now, Command::Read(reads));
        // The next poll returns what follows.
        self.due = Time::ZERO;
        true
    }

    fn reports_events(&self) -> bool {
        true
    }

    fn lingers(&self) -> bool {
        self.endpoint.lingers()
    }

    fn counts(&self) -> SocketCounters {
        self.endpoint.counts()
    }

    fn sending(&self) -> Option<SenderState> {
        self.endpoint.sending()
    }
}
