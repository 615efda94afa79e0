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
    /// Returns the address on which the server listens. It is `server`, with a new port if its port is 0 and
    /// the kernel cannot choose one.
    fn server_address(&self, server: &EndAddresses) -> EndAddresses {
        server.clone()
    }

    /// Opens a listening socket at an address of the server.
    fn listen(&self, server: &EndAddresses) -> Result<Socket, SocketsError>;

    /// Opens a socket that connects to the server; it becomes writable when connected.
    fn connect(&self, client: &EndAddresses, server: &EndAddresses) -> Result<Socket, SocketsError>;

    /// Creates the transceiver of a socket that is, or will be, connected to `peer`.
    fn transceiver(&self, socket: Socket, peer: &EndAddresses) -> Box<dyn Transceiver>;

    /// Creates the transceiver of a server's socket that serves only this client.
    fn dedicated_transceiver(&self, socket: Socket, peer: &EndAddresses) -> Box<dyn Transceiver> {
        self.transceiver(socket, peer)
    }

    /// Accepts the next connection; also returns its source, if it has an address. `client` has the addresses of the
    /// client. If the client `moves`, only the source address is used, because the client may lack the others.
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

    /// Returns whether the thread must be in the server's network namespace to accept.
    fn accepts_in_server_network(&self) -> bool {
        false
    }

    /// Returns whether a server accepts connections; otherwise it has a socket for each client.
    fn accepts(&self) -> bool {
        true
    }

    /// Returns whether transceivers have their own timers, because the kernel has none for them.
    fn has_timers(&self) -> bool {
        false
    }

    /// Returns the secrets that decrypt the packets so far, as lines of a TLS key log.
    fn secrets(&self) -> String {
        String::new()
    }
}

/// One end of a connection, which sends and receives messages.
pub(crate) trait Transceiver {
    /// Returns the socket to watch.
    fn socket(&self) -> &Socket;

    /// Returns whether the connection is open once its socket is writable; otherwise it reports its opening
    /// as an event.
    fn is_open_when_writable(&self) -> bool {
        true
    }

    /// Returns the kernel's pending error.
    fn error(&self) -> io::Result<Option<io::Error>> {
        self.socket().take_error()
    }

    /// Handles the opening of the connection, before the first message.
    fn opened(&mut self) -> Result<(), ConnectionFault> {
        Ok(())
    }

    /// Sends a message. After the result `WouldBlock`, the same message must be sent again before any other.
    fn send(&mut self, message: &Outgoing, now: Time) -> io::Result<SendOutcome>;

    /// Sends the messages that were held back to share packets; called when the application has nothing more to send
    /// now.
    fn send_all(&mut self, _now: Time) -> io::Result<()> {
        Ok(())
    }

    /// Reads once and passes what is now complete to `take`. `buffer` is scratch space.
    fn receive(
        &mut self,
        buffer: &mut [u8],
        now: Time,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault>;

    /// Adds a datagram that arrived before the socket existed, to be read first.
    fn handle_early_datagram(&mut self, _octets: Bytes, _ecn: Ecn) {
        unreachable!("a kernel socket is accepted before datagrams arrive");
    }

    /// Ends the sending direction.
    fn shutdown(&mut self, _now: Time) -> io::Result<()> {
        self.socket().shutdown(Shutdown::Write)
    }

    /// Returns the time of the next timer.
    fn due(&self) -> Time {
        Time::MAX
    }

    /// Handles the connection's timer, or new room in its socket.
    fn handle_timer(
        &mut self,
        _now: Time,
        _take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        Ok(())
    }

    /// Returns whether accepted data wait for room in the socket.
    fn waits_for_room(&self) -> bool {
        false
    }

    /// Sets whether the application reads; returns whether the socket must be read even if the application does not.
    fn set_reading(&mut self, _reads: bool, _now: Time) -> bool {
        false
    }

    /// Returns whether the transceiver reports its opening, deliveries and end as events; otherwise these follow from
    /// the state of its socket.
    fn reports_events(&self) -> bool {
        false
    }

    /// Returns whether the transport has ended but must still answer its peer.
    fn lingers(&self) -> bool {
        false
    }

    /// Handles an added or removed address of the host.
    fn change_address(&mut self, _: AddressChange) -> Result<(), ConnectionFault> {
        Ok(())
    }

    /// Returns what the kernel has counted for the connection.
    fn counts(&self) -> SocketCounters;

    /// Returns the state of the connection as a sender, as far as the kernel reports it. `None` if it has
    /// sent no data or has no congestion control.
    fn sending(&self) -> Option<SenderState> {
        None
    }
}

/// The state of a connection's sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SenderState {
    /// State of each path, by address of the peer.
    pub(crate) paths: Vec<PathState>,
    /// Number of data segments or DATA chunks retransmitted so far.
    pub(crate) retransmissions: u64,
}

/// The result of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// The kernel accepted the whole message.
    Complete,
    /// The send buffer is full.
    WouldBlock,
}

/// What has happened on a socket.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// The following messages arrived at this time of the wall clock, in ns since 1970; `None`: unknown.
    ReceivedAt(Option<u64>),
    /// A message, and its stream.
    Message(u16, Bytes),
    /// An association is up, with its number on a one-to-many socket.
    Up(u32),
    /// A path of an association changed.
    Path(IpAddr, PathStatus),
    /// Octets of a message that may be incomplete.
    Part,
    /// There is room for messages again.
    Writable,
    /// The peer sends no more data.
    PeerClosed,
    /// Both ends have closed the connection.
    Closed,
}

/// Why a connection cannot continue.
#[derive(Debug)]
pub(crate) enum ConnectionFault {
    /// An error of the kernel.
    Kernel(io::Error),
    /// An error of the protocol, in the terms of the RFC.
    Protocol(&'static str),
    /// The peer sends no more data, which is not a fault if the connection is being closed.
    PeerClosed,
}

impl ConnectionFault {
    /// Returns whether the operation would only have blocked.
    pub(crate) fn is_would_block(&self) -> bool {
        matches!(self, Self::Kernel(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Returns the reason in the terms of the RFC.
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

/// A protocol, with its names in the kernel and for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketProtocol {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) protocol: socket2::Protocol,
    /// The remedy if the kernel lacks the protocol.
    pub(crate) cure: &'static str,
}

impl SocketProtocol {
    /// Opens a socket bound to the first address of an end.
    pub(crate) fn open_socket(&self, site: &EndAddresses) -> Result<Socket, SocketsError> {
        self.socket_at(SocketAddr::new(site.addresses[0], site.port))
    }

    /// Opens a socket for any address of an end.
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

/// Checks the result of a non-blocking connect, which may still be in progress.
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

/// Returns the first address of an end with its port.
pub(crate) fn address(site: &EndAddresses) -> SockAddr {
    SocketAddr::new(site.addresses[0], site.port).into()
}

/// Returns a socket's own port.
pub(crate) fn own_port(socket: &Socket) -> Result<u16, SocketsError> {
    let address = socket.local_addr().map_err(failed_to("read the local port"))?;
    Ok(address.as_socket().as_ref().map_or(0, SocketAddr::port))
}

/// Returns a function that adds the attempted operation to an error of the kernel.
pub(crate) fn failed_to(doing: impl Into<String>) -> impl FnOnce(io::Error) -> SocketsError {
    move |source| SocketsError::Refused { doing: doing.into(), source }
}

/// Converts the result of a send that accepts the whole message or nothing.
pub(crate) fn complete_or_blocked(result: io::Result<usize>) -> io::Result<SendOutcome> {
    match result {
        Ok(_) => Ok(SendOutcome::Complete),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(SendOutcome::WouldBlock),
        Err(e) => Err(e),
    }
}
