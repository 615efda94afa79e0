//! A blocking connection that carries whole messages, over TCP, TLS, SCTP or SCTP over UDP.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use bytes::Bytes;
use hol_base::Duration;
use hol_simco::{Message, PAYLOAD_PROTOCOL, length_of};
use hol_system::Association;
use hol_transport::{DeliveryTimes, Framer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::ClientConnection;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::deadline::{Deadline, to_std};
use crate::sctp_over_udp::SctpOverUdp;
use crate::{Server, SessionError, Tls, Transport};

/// Maximum number of octets read from the socket at once.
const READ_OCTETS: usize = 1 << 16;
/// Idle time before TCP sends a keepalive probe to the middlebox, and the interval between probes.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// A connection to a middlebox.
#[derive(Debug)]
pub(crate) struct Connection {
    carrier: Carrier,
    receive_buffer: Vec<u8>,
}

/// What carries messages to and from the middlebox. RFC 4540 section 3.
#[derive(Debug)]
enum Carrier {
    /// TCP: a byte stream, which is split into messages by their lengths.
    Tcp { socket: Socket, framer: Framer },
    /// TLS: an encrypted byte stream, which is split into messages by their lengths.
    Tls { socket: Socket, session: Box<ClientConnection>, framer: Framer },
    /// SCTP: each user message is one SIMCO message; messages use the streams in turn.
    Sctp { association: Association, streams: u16 },
    /// SCTP over UDP, with hol's own SCTP endpoint; otherwise like [`Self::Sctp`].
    SctpOverUdp(SctpOverUdp),
}

impl Connection {
    /// Connects to the first of the server's addresses that accepts a connection.
    pub fn open(server: &Server) -> Result<Self, SessionError> {
        let mut failure = io::ErrorKind::NotFound.into();
        for address in server.resolve_addresses()? {
            match Carrier::connect(server, address) {
                Ok(carrier) => return Ok(Self { carrier, receive_buffer: vec![0; READ_OCTETS] }),
                Err(error) if is_protocol_missing(&error) => return Err(SessionError::NoSctp),
                // Another address would not correct a wrong identity.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error.into()),
                Err(error) => failure = error,
            }
        }
        Err(SessionError::Connect { server: Box::new(server.clone()), source: failure })
    }

    /// Returns the socket that becomes readable when data from the middlebox arrive.
    pub fn socket(&self) -> &Socket {
        self.carrier.socket()
    }

    /// Sends a whole message; waits if the send buffer is full.
    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        let octets = message.to_bytes();
        match &mut self.carrier {
            Carrier::Tcp { socket, .. } => socket.write_all(&octets),
            Carrier::Tls { socket, session, .. } => {
                session.writer().write_all(&octets)?;
                while session.wants_write() {
                    session.write_tls(socket)?;
                }
                Ok(())
            }
            Carrier::Sctp { association, streams } => {
                let stream = message.tid.0 % u32::from(*streams);
                association.send(&octets, stream as u16, PAYLOAD_PROTOCOL)
            }
            Carrier::SctpOverUdp(association) => association.send(&octets),
        }
    }

    /// Returns the next whole message from the middlebox; `None` if none arrives by the deadline.
    pub fn receive(&mut self, deadline: Deadline) -> io::Result<Option<Bytes>> {
        loop {
            if let Carrier::Tcp { framer, .. } | Carrier::Tls { framer, .. } = &mut self.carrier
                && let Some(framed) = framer.next().map_err(io::Error::other)?
            {
                return Ok(Some(framed.payload));
            }
            if !wait(self.carrier.socket(), deadline)? {
                return Ok(None);
            }
            match &mut self.carrier {
                Carrier::Sctp { association, .. } => {
                    if let Some(message) = association.receive(&mut self.receive_buffer)? {
                        return Ok(Some(message));
                    }
                }
                Carrier::SctpOverUdp(association) => return association.receive().map(Some),
                Carrier::Tcp { socket, framer } => {
                    let length = socket.read(&mut self.receive_buffer)?;
                    if length == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    framer.push(
                        Bytes::copy_from_slice(&self.receive_buffer[..length]),
                        DeliveryTimes::default(),
                    );
                }
                Carrier::Tls { socket, session, framer } => {
                    if session.read_tls(socket)? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    let length = session.process_new_packets().map_err(tls_error)?.plaintext_bytes_to_read();
                    let mut octets = vec![0; length];
                    session.reader().read_exact(&mut octets)?;
                    framer.push(octets.into(), DeliveryTimes::default());
                }
            }
        }
    }
}

impl Carrier {
    fn connect(server: &Server, address: SocketAddr) -> io::Result<Self> {
        let protocol = match server.transport {
            Transport::Tcp => Protocol::TCP,
            Transport::Sctp => Protocol::SCTP,
            Transport::SctpOverUdp => {
                return SctpOverUdp::connect(address, server.timeout).map(Self::SctpOverUdp);
            }
        };
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
        let timeout = to_std(server.timeout);
        socket.connect_timeout(&address.into(), timeout)?;
        socket.set_write_timeout(Some(timeout))?;
        if server.transport == Transport::Sctp {
            let association = Association::new(socket)?;
            let streams = association.streams()?.max(1);
            return Ok(Self::Sctp { association, streams });
        }
        socket.set_tcp_nodelay(true)?;
        let keepalive = TcpKeepalive::new().with_time(to_std(KEEPALIVE));
        socket.set_tcp_keepalive(&keepalive.with_interval(to_std(KEEPALIVE_INTERVAL)))?;
        let framer = Framer::new(|octets| Ok(length_of(octets)));
        match &server.tls {
            None => Ok(Self::Tcp { socket, framer }),
            Some(tls) => {
                Ok(Self::Tls { session: Box::new(perform_handshake(server, tls, &socket)?), socket, framer })
            }
        }
    }

    fn socket(&self) -> &Socket {
        match self {
            Self::Tcp { socket, .. } | Self::Tls { socket, .. } => socket,
            Self::Sctp { association, .. } => association.socket(),
            Self::SctpOverUdp(association) => association.socket(),
        }
    }
}

/// Performs the TLS handshake, and checks the server's identity.
fn perform_handshake(server: &Server, tls: &Tls, mut socket: &Socket) -> io::Result<ClientConnection> {
    let mut session = tls.client(&server.host)?;
    socket.set_read_timeout(Some(to_std(server.timeout)))?;
    while session.is_handshaking() {
        session.complete_io(&mut socket).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })?;
    }
    socket.set_read_timeout(None)?;
    Ok(session)
}

fn tls_error(problem: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// Waits until the socket is readable; returns false at the deadline.
fn wait(socket: &Socket, deadline: Deadline) -> io::Result<bool> {
    loop {
        let remaining = deadline.remaining().and_then(|time| Timespec::try_from(time).ok());
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], remaining.as_ref()) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// Returns whether the error means that the kernel lacks the protocol.
fn is_protocol_missing(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::PROTONOSUPPORT | Errno::SOCKTNOSUPPORT))
}
