//! The common interface of all protocols: opening sockets, sending and receiving messages.

use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{FramingError, PathState, PathStatus};
use hol_wire::Ecn;
use hol_workloads::Outgoing;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::host_addresses::AddressChange;
use crate::ip_options::unspecified;

/// Opens the sockets of a protocol.
pub(crate) trait Opener {
    /// Returns the address on which the server listens: `server`, with a new port if its port is 0 and the kernel
    /// cannot choose one.
    fn server_address(&self, server: &EndAddresses) -> EndAddresses {
        server.clone()
    }

    /// Opens a listening socket at an address of the server.
    fn listen(&self, server: &EndAddresses) -> Result<Socket, SocketsError>;

    /// Opens a socket that connects to the server; the socket becomes writable when it is connected.
    fn connect(&self, client: &EndAddresses, server: &EndAddresses) -> Result<Socket, SocketsError>;

    /// Creates the transceiver of a socket that is, or will be, connected to `peer`.
    fn transceiver(&self, socket: Socket, peer: &EndAddresses) -> Box<dyn Transceiver>;

    /// Creates the transceiver of a server's socket that serves only the client `peer`.
    fn dedicated_transceiver(&self, socket: Socket, peer: &EndAddresses) -> Box<dyn Transceiver> {
        self.transceiver(socket, peer)
    }

    /// Accepts the next connection; also returns its source address, if it has one. `client` has the addresses of the
    /// client. If the client `moves`, only the source address is used, because the client may not have the other
    /// addresses.
    fn accept(
        &self,
        listener: &Socket,
        client: &EndAddresses,
        moves: bool,
    ) -> io::Result<(Option<SocketAddr>, Box<dyn Transceiver>)> {
        let (socket, peer) = listener.accept4(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)?;
        let peer = peer.as_socket();
        let mut client = client.clone();
        if let Some(peer) = peer.filter(|_| moves) {
            client.addresses = vec![peer.ip()];
        }
        Ok((peer, self.transceiver(socket, &client)))
    }

    /// Returns whether the calling thread must be in the server's network namespace to accept a connection.
    fn accepts_in_server_network(&self) -> bool {
        false
    }

    /// Returns whether a server accepts connections from a listening socket; otherwise it has one socket per client.
    fn accepts(&self) -> bool {
        true
    }

    /// Returns whether transceivers have timers of their own, because the transport runs outside the kernel.
    fn has_timers(&self) -> bool {
        false
    }

    /// Returns the secrets with which the packets sent so far can be decrypted, as lines of a TLS key log.
    fn secrets(&self) -> String {
        String::new()
    }
}

/// One end of a connection, which sends and receives messages.
pub(crate) trait Transceiver {
    /// Returns the socket whose readiness the event loop watches.
    fn socket(&self) -> &Socket;

    /// Returns whether the connection is open once its socket is writable; otherwise an event reports its opening.
    fn is_open_when_writable(&self) -> bool {
        true
    }

    /// Returns and clears the error that the kernel has recorded for the socket (SO_ERROR).
    fn error(&self) -> io::Result<Option<io::Error>> {
        self.socket().take_error()
    }

    /// Prepares the connection after it has opened, before the first message is sent.
    fn opened(&mut self) -> Result<(), ConnectionFault> {
        Ok(())
    }

    /// Sends a message. After the result `WouldBlock`, the same message must be sent again before any other.
    fn send(&mut self, message: &Outgoing, now: Time) -> io::Result<SendOutcome>;

    /// Sends the messages that were held back to share packets. Called when the application has nothing more to send
    /// now.
    fn send_all(&mut self, _now: Time) -> io::Result<()> {
        Ok(())
    }

    /// Reads once from the socket and passes the messages that are complete now to `take`. `buffer` is scratch space.
    fn receive(
        &mut self,
        buffer: &mut [u8],
        now: Time,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault>;

    /// Adds a datagram that arrived before the socket existed; it is read before all others.
    fn handle_early_datagram(&mut self, _octets: Bytes, _ecn: Ecn) {
        unreachable!("a kernel socket is accepted before datagrams arrive");
    }

    /// Closes the connection for sending.
    fn shutdown(&mut self, _now: Time) -> io::Result<()> {
        self.socket().shutdown(Shutdown::Write)
    }

    /// Returns when the transceiver's next timer expires.
    fn due(&self) -> Time {
        Time::MAX
    }

    /// Handles the expiry of the connection's timer, or new room in its socket's send buffer.
    fn handle_timer(
        &mut self,
        _now: Time,
        _take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        Ok(())
    }

    /// Returns whether data accepted from the application wait for room in the socket's send buffer.
    fn waits_for_room(&self) -> bool {
        false
    }

    /// Sets whether the application reads. Returns whether the socket must be read even if the application does not
    /// read.
    fn set_reading(&mut self, _reads: bool, _now: Time) -> bool {
        false
    }

    /// Returns whether the transceiver reports the opening of the connection, deliveries and its end as events;
    /// otherwise the state of the socket shows them.
    fn reports_events(&self) -> bool {
        false
    }

    /// Returns whether the connection has ended but this end must still answer its peer.
    fn lingers(&self) -> bool {
        false
    }

    /// Handles the addition or removal of an address of the host.
    fn change_address(&mut self, _: AddressChange) -> Result<(), ConnectionFault> {
        Ok(())
    }

    /// Returns the packet counters of the connection.
    fn counts(&self) -> SocketCounters;

    /// Returns the state of the connection's sender, as far as the kernel reports it. `None` if it has sent no data or
    /// has no congestion control.
    fn sending(&self) -> Option<SenderState> {
        None
    }
}

/// The state of a connection's sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SenderState {
    /// State of the path to each address of the peer.
    pub(crate) paths: Vec<PathState>,
    /// Number of data segments or DATA chunks retransmitted so far.
    pub(crate) retransmissions: u64,
}

/// The result of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// The kernel has accepted the whole message.
    Complete,
    /// The kernel has not accepted the whole message, because the send buffer is full.
    WouldBlock,
}

/// An event on a socket.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// The messages reported next arrived at this time of the wall clock, in ns since 1970; `None` if unknown.
    ReceivedAt(Option<u64>),
    /// A message has arrived: its stream and its payload.
    Message(u16, Bytes),
    /// An association has been established. Its number is 0 unless the socket is one-to-many.
    Up(u32),
    /// The status of the path to this address of the peer has changed.
    Path(IpAddr, PathStatus),
    /// Octets of a message have arrived, but the message may be incomplete.
    Part,
    /// The socket accepts messages again.
    Writable,
    /// The peer has closed the connection for sending.
    PeerClosed,
    /// Both ends have closed the connection.
    Closed,
}

/// Why a connection cannot continue.
#[derive(Debug)]
pub(crate) enum ConnectionFault {
    /// The kernel returned an error.
    Kernel(io::Error),
    /// The protocol failed, for this reason in the terms of the RFC.
    Protocol(&'static str),
    /// The peer has closed the connection for sending, which is not a fault while the connection is being closed.
    PeerClosed,
}

impl ConnectionFault {
    /// Returns whether the fault only means that the operation would have blocked.
    pub(crate) fn is_would_block(&self) -> bool {
        matches!(self, Self::Kernel(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Returns the reason of the fault in the terms of the RFC.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Protocol(reason) => reason,
            Self::PeerClosed => "closed by the peer",
            Self::Kernel(error) => match error.raw_os_error() {
                Some(libc::ECONNREFUSED) => "connection refused",
                Some(libc::ECONNRESET) => "connection reset",
                Some(libc::ECONNABORTED) => "connection aborted",
                Some(libc::ETIMEDOUT) => "connection timed out",
                Some(libc::EPIPE) => "connection closed for sending",
                Some(libc::EHOSTUNREACH) => "host unreachable",
                Some(libc::ENETUNREACH) => "network unreachable",
                Some(libc::EMSGSIZE) => "message too long",
                Some(libc::EINVAL) => "invalid argument, such as a stream that the association does not have",
                Some(libc::ENOBUFS | libc::ENOMEM) => "out of memory",
                _ => "unexpected error of the operating system",
            },
        }
    }
}

impl From<io::Error> for ConnectionFault {
    fn from(error: io::Error) -> Self {
        Self::Kernel(error)
    }
}

impl From<FramingError> for ConnectionFault {
    fn from(error: FramingError) -> Self {
        Self::Protocol(error.0)
    }
}

/// A transport protocol: its name for people and its numbers in the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketProtocol {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) protocol: socket2::Protocol,
    /// What a user can do if the kernel lacks the protocol.
    pub(crate) cure: &'static str,
}

impl SocketProtocol {
    /// Opens a socket bound to the first address of an end.
    pub(crate) fn open_socket(&self, site: &EndAddresses) -> Result<Socket, SocketsError> {
        self.socket_at(SocketAddr::new(site.addresses[0], site.port))
    }

    /// Opens a socket bound to the wildcard address, or to the end's address if it has only one.
    pub(crate) fn open_wildcard_socket(&self, site: &EndAddresses) -> Result<Socket, SocketsError> {
        let address = match site.addresses[..] {
            [only] => only,
            _ => unspecified(site.addresses[0]),
        };
        self.socket_at(SocketAddr::new(address, site.port))
    }

    fn socket_at(&self, at: SocketAddr) -> Result<Socket, SocketsError> {
        let kind = self.kind.nonblocking().cloexec();
        let socket =
            Socket::new(Domain::for_address(at), kind, Some(self.protocol)).map_err(|e| self.missing(e))?;
        let reuse = || socket.set_reuse_address(true).map_err(failed_to("set SO_REUSEADDR"));
        // With SO_REUSEADDR the kernel would consider a port free that another datagram socket uses.
        let is_late = at.port() == 0 && self.kind == Type::DGRAM;
        // An earlier run's connections may be in TIME-WAIT.
        if !is_late {
            reuse()?;
        }
        socket.bind(&at.into()).map_err(failed_to(format!("bind {} to {at}", self.name)))?;
        if is_late {
            reuse()?;
        }
        Ok(socket)
    }

    fn missing(&self, source: io::Error) -> SocketsError {
        match source.raw_os_error() {
            Some(libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT | libc::ENOPROTOOPT) => {
                SocketsError::NoProtocol { protocol: self.name, cure: self.cure, source }
            }
            _ => SocketsError::Refused { doing: format!("create a socket of {}", self.name), source },
        }
    }
}

/// Checks the result of a non-blocking `connect`, which may still be in progress.
pub(crate) fn check_connecting(
    connecting: io::Result<()>,
    server: &EndAddresses,
) -> Result<(), SocketsError> {
    match connecting {
        Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => {
            Err(failed_to(format!("connect to {}:{}", server.addresses[0], server.port))(e))
        }
        _ => Ok(()),
    }
}

/// Returns the first address of an end, together with its port.
pub(crate) fn address(site: &EndAddresses) -> SockAddr {
    SocketAddr::new(site.addresses[0], site.port).into()
}

/// Returns a socket's own port.
pub(crate) fn own_port(socket: &Socket) -> Result<u16, SocketsError> {
    let address = socket.local_addr().map_err(failed_to("read the local port"))?;
    Ok(address.as_socket().as_ref().map_or(0, SocketAddr::port))
}

/// Returns a function that adds the name of the failed operation to an error of the kernel.
pub(crate) fn failed_to(doing: impl Into<String>) -> impl FnOnce(io::Error) -> SocketsError {
    move |source| SocketsError::Refused { doing: doing.into(), source }
}

/// Converts the result of a system call that accepts either the whole message or nothing.
pub(crate) fn complete_or_blocked(result: io::Result<usize>) -> io::Result<SendOutcome> {
    match result {
        Ok(_) => Ok(SendOutcome::Complete),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(SendOutcome::WouldBlock),
        Err(e) => Err(e),
    }
}
