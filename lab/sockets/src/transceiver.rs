//! One face for all protocols: sockets that are opened, and messages that go in and come out.

use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{FramingError, PathState, PathStatus};
use hol_wire::Ecn;
use hol_workloads::Outgoing;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::assignment::{Counts, Site};
use crate::error::SocketsError;
use crate::ip_options::unspecified;
use crate::presence::Change;

/// How the sockets of a protocol are opened.
pub(crate) trait Opener {
    /// Where the server is to be, if the kernel cannot choose a port for it.
    fn place(&self, server: &Site) -> Site {
        server.clone()
    }

    /// A socket that waits for the client at an address of the server.
    fn listen(&self, server: &Site) -> Result<Socket, SocketsError>;

    /// A socket that is connecting to the server; it is writable when that is done.
    fn connect(&self, client: &Site, server: &Site) -> Result<Socket, SocketsError>;

    /// The transceiver of a socket that is connected to `peer`, or is going to be.
    fn transceiver(&self, socket: Socket, peer: &Site) -> Box<dyn Transceiver>;

    /// The transceiver of a server's socket that has this client only.
    fn answerer(&self, socket: Socket, peer: &Site) -> Box<dyn Transceiver> {
        self.transceiver(socket, peer)
    }

    /// The next connection that has come to a listener, and from where, if that has an address; `client` may move: it need not
    /// have its other addresses any more.
    fn accept(
        &self,
        listener: &Socket,
        client: &Site,
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

    /// Whether the thread has to be in the server's network to accept.
    fn accepts_at_home(&self) -> bool {
        false
    }

    /// Whether a server accepts connections; else it has a socket for each client.
    fn accepts(&self) -> bool {
        true
    }

    /// Whether transceivers have timers of their own, because the kernel has none for them.
    fn has_timers(&self) -> bool {
        false
    }

    /// What decrypts the packets so far, in the lines of a TLS key log.
    fn secrets(&self) -> String {
        String::new()
    }
}

/// One end of a connection.
pub(crate) trait Transceiver {
    /// What to watch.
    fn socket(&self) -> &Socket;

    /// Whether it is open when it can be written for the first time; else it tells.
    fn is_open_when_writable(&self) -> bool {
        true
    }

    /// What the kernel has to tell against it.
    fn error(&self) -> io::Result<Option<io::Error>> {
        self.socket().take_error()
    }

    /// The connection is open: the last word before the first message.
    fn opened(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Sends a message. One that would block is to be given again before any other.
    fn send(&mut self, message: &Outgoing, now: Time) -> io::Result<Sent>;

    /// The application has no more to send now: what a transport holds back, so that messages share a packet, is to leave.
    fn send_all(&mut self, _now: Time) -> io::Result<()> {
        Ok(())
    }

    /// Reads once and gives what is whole now to `take`. `buffer` is scratch space.
    fn receive(&mut self, buffer: &mut [u8], now: Time, take: &mut dyn FnMut(Heard)) -> Result<(), Fault>;

    /// Takes a datagram that came before its socket was there: it is read before all others.
    fn hear_early(&mut self, _octets: Bytes, _ecn: Ecn) {
        unreachable!("it is accepted before anything comes");
    }

    /// Sends no more.
    fn shutdown(&mut self, _now: Time) -> io::Result<()> {
        self.socket().shutdown(Shutdown::Write)
    }

    /// When it wants to act by itself.
    fn due(&self) -> Time {
        Time::MAX
    }

    /// It is due, or has room for what waited for it.
    fn act(&mut self, _now: Time, _take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        Ok(())
    }

    /// Whether what it has taken waits for the socket's room.
    fn waits_for_room(&self) -> bool {
        false
    }

    /// The application reads from now on, or does not. Whether its socket is to be read all the same.
    fn set_reading(&mut self, _reads: bool, _now: Time) -> bool {
        false
    }

    /// Whether it tells when it is open, has delivered something and is over; else that follows from its socket.
    fn speaks_for_itself(&self) -> bool {
        false
    }

    /// Whether it has still something to say when it is over.
    fn lingers(&self) -> bool {
        false
    }

    /// An address of the host has come or gone.
    fn follow(&mut self, _: Change) -> Result<(), Fault> {
        Ok(())
    }

    /// What the kernel has counted.
    fn counts(&self) -> Counts;

    /// How it stands as a sender, as far as the kernel tells; `None`: it has not sent data, or nothing keeps it from that.
    fn sending(&self) -> Option<Sending> {
        None
    }
}

/// How a connection stands as a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sending {
    /// By address of the peer.
    pub(crate) paths: Vec<PathState>,
    /// Data segments or DATA chunks sent again so far.
    pub(crate) again: u64,
}

/// What became of a message that was to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The kernel has all of it.
    Whole,
    /// The send buffer is full.
    WouldBlock,
}

/// What a socket had to tell.
#[derive(Debug)]
pub(crate) enum Heard {
    /// What follows of messages was in the socket when the wall clock showed this, in ns since 1970; `None`: nobody knows.
    Came(Option<u64>),
    /// A message, and the stream that it came on.
    Message(u16, Bytes),
    /// An association is up; the number is by which a socket of several knows it.
    Up(u32),
    /// A path of an association changed.
    Path(IpAddr, PathStatus),
    /// Octets of a message that may not be whole yet.
    Part,
    /// There is room for messages again.
    Room,
    /// The peer sends no more.
    PeerClosed,
    /// Both ends have closed, and know it.
    Closed,
}

/// Why a connection cannot go on.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The kernel says so.
    Kernel(io::Error),
    /// In RFC words.
    Protocol(&'static str),
    /// The peer sends no more: an end, and no fault where one is expected.
    PeerClosed,
}

impl Fault {
    /// Whether there was merely nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Self::Kernel(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// In RFC words.
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
                Some(libc::EINVAL) => "invalid argument, such as a stream that the association has not",
                Some(libc::ENOBUFS | libc::ENOMEM) => "out of memory",
                _ => "unexpected error of the operating system",
            },
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Kernel(error)
    }
}

impl From<FramingError> for Fault {
    fn from(error: FramingError) -> Self {
        Self::Protocol(error.0)
    }
}

/// A protocol by the names that the kernel and people have for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) protocol: socket2::Protocol,
    /// What to do when the kernel has it not.
    pub(crate) cure: &'static str,
}

impl Family {
    /// A socket, bound to the first address of a site.
    pub(crate) fn socket(&self, site: &Site) -> Result<Socket, SocketsError> {
        self.socket_at(SocketAddr::new(site.addresses[0], site.port))
    }

    /// A socket for whoever comes to any address of a site.
    pub(crate) fn socket_for_all(&self, site: &Site) -> Result<Socket, SocketsError> {
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
        let reuse = || socket.set_reuse_address(true).map_err(refused("set SO_REUSEADDR"));
        // Of those that may share a port the kernel takes one for free that another socket of datagrams has.
        let is_late = at.port() == 0 && self.kind == Type::DGRAM;
        // A run may follow upon another whose connections are in TIME-WAIT.
        if !is_late {
            reuse()?;
        }
        socket.bind(&at.into()).map_err(refused(format!("bind {} to {at}", self.name)))?;
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
            _ => SocketsError::Refused { doing: format!("make a socket of {}", self.name), source },
        }
    }
}

/// Begins to connect `socket`.
pub(crate) fn begin(connecting: io::Result<()>, server: &Site) -> Result<(), SocketsError> {
    match connecting {
        Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => {
            Err(refused(format!("connect to {}:{}", server.addresses[0], server.port))(e))
        }
        _ => Ok(()),
    }
}

/// The first address of a site with its port.
pub(crate) fn address(site: &Site) -> SockAddr {
    SocketAddr::new(site.addresses[0], site.port).into()
}

/// The port of a socket's own end.
pub(crate) fn own_port(socket: &Socket) -> Result<u16, SocketsError> {
    let address = socket.local_addr().map_err(refused("ask for the port"))?;
    Ok(address.as_socket().as_ref().map_or(0, SocketAddr::port))
}

/// The error of a call that the kernel refused.
pub(crate) fn refused(doing: impl Into<String>) -> impl FnOnce(io::Error) -> SocketsError {
    move |source| SocketsError::Refused { doing: doing.into(), source }
}

/// What a send that takes all or nothing did.
pub(crate) fn whole_or_nothing(result: io::Result<usize>) -> io::Result<Sent> {
    match result {
        Ok(_) => Ok(Sent::Whole),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Sent::WouldBlock),
        Err(e) => Err(e),
    }
}
