//! Sockets that wait for agents.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hol_base::{Duration, Time};
use hol_system::{Interest, Poller};
use rustls::ServerConfig;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::DaemonError;
use crate::line::Line;
use crate::sctp::Sctp;
use crate::tcp::Tcp;
use crate::tls::Tls;
use crate::token::Token;

/// Where the daemon listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    /// Over what.
    pub transport: Transport,
    /// Port 0 is any that is free.
    pub address: SocketAddr,
    /// True if only that is heard which an interface brings that is protected below IP.
    pub is_protected: bool,
}

/// What carries SIMCO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A stream of octets.
    Tcp,
    /// The same, protected.
    Tls,
    /// Messages, in streams that do not wait for one another.
    Sctp,
}

/// An agent that has connected.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Where.
    pub listen: Listen,
    pub line: Box<dyn Line>,
    pub peer: SocketAddr,
}

/// Reads the address of a socket: `127.0.0.1:7626`, `[::1]:7626`.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let cure = "is no address with a port; write 127.0.0.1:7626, or [::1]:7626";
    text.parse().map_err(|_| format!("`{text}` {cure}"))
}

/// The listening sockets.
#[derive(Debug)]
pub(crate) struct Listeners {
    sockets: Vec<(Listen, Socket)>,
    /// How TLS is spoken, if it is.
    tls: Option<Arc<ServerConfig>>,
    /// Nobody is accepted until then, or until a connection closes; [`Time::ZERO`] if agents are accepted.
    paused_until: Time,
}

impl Listeners {
    /// Agents that wait in the kernel.
    const BACKLOG: i32 = 1024;
    /// How long to wait before another attempt when there is no room: the system may find some elsewhere.
    const PAUSE: Duration = Duration::from_secs(1);

    /// Opens all sockets, and watches them. Those that are protected are of this interface.
    pub fn open(
        all: &[Listen],
        interface: Option<&str>,
        tls: Option<Arc<ServerConfig>>,
        poller: &Poller<Token>,
    ) -> Result<Self, DaemonError> {
        let open = |listen: &Listen| {
            let interface = interface.filter(|_| listen.is_protected);
            listen.open(interface).map_err(|source| DaemonError::Listen { at: *listen, source })
        };
        let sockets = all.iter().map(open).collect::<Result<_, _>>()?;
        let listeners = Self { sockets, tls, paused_until: Time::ZERO };
        listeners.watch(poller)?;
        Ok(listeners)
    }

    /// Where they listen, with the ports that they were given.
    pub fn addresses(&self) -> impl Iterator<Item = Listen> {
        self.sockets.iter().map(|(listen, _)| *listen)
    }

    /// From now on TLS is spoken so.
    pub fn speak(&mut self, tls: Option<Arc<ServerConfig>>) {
        self.tls = tls;
    }

    /// Accepts an agent; `None` if nobody waits.
    pub fn accept(&self, number: u32) -> io::Result<Option<Arrival>> {
        let (listen, socket) = &self.sockets[number as usize];
        loop {
            match socket.accept() {
                Ok((socket, peer)) => {
                    // An agent that has gone again is no reason to keep the others waiting.
                    if let (Some(peer), Ok(line)) = (peer.as_socket(), self.line(listen.transport, socket)) {
                        return Ok(Some(Arrival { listen: *listen, line, peer }));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Accepts nobody for a while.
    pub fn pause(&mut self, now: Time, poller: &Poller<Token>) -> io::Result<()> {
        if self.paused_until == Time::ZERO {
            self.sockets.iter().try_for_each(|(_, socket)| poller.remove(socket))?;
        }
        self.paused_until = now + Self::PAUSE;
        Ok(())
    }

    /// Accepts again, if it did not.
    pub fn resume(&mut self, poller: &Poller<Token>) -> io::Result<()> {
        if self.paused_until != Time::ZERO {
            self.paused_until = Time::ZERO;
            self.watch(poller)?;
        }
        Ok(())
    }

    /// A connection has closed: [`resume`](Self::resume) at once.
    pub fn room_again(&mut self, now: Time) {
        self.paused_until = self.paused_until.min(now);
    }

    /// When to [`resume`](Self::resume).
    pub fn wake_at(&self) -> Time {
        if self.paused_until == Time::ZERO { Time::MAX } else { self.paused_until }
    }

    fn line(&self, transport: Transport, socket: Socket) -> io::Result<Box<dyn Line>> {
        socket.set_nonblocking(true)?;
        Ok(match (transport, &self.tls) {
            (Transport::Tcp, _) => Box::new(Tcp::new(socket)?),
            (Transport::Tls, Some(config)) => Box::new(Tls::new(socket, config.clone())?),
            (Transport::Tls, None) => unreachable!("settings that listen for TLS say how it is spoken"),
            (Transport::Sctp, _) => Box::new(Sctp::new(socket)?),
        })
    }

    fn watch(&self, poller: &Poller<Token>) -> io::Result<()> {
        let mut sockets = self.sockets.iter().zip(0..);
        sockets
            .try_for_each(|((_, socket), number)| poller.add(socket, Token::Listener(number), Interest::Read))
    }
}

impl Listen {
    /// A listening socket, and the address that it got.
    fn open(&self, interface: Option<&str>) -> io::Result<(Self, Socket)> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(self.address), kind, Some(self.transport.protocol()))?;
        // Connections of an earlier daemon may be in TIME-WAIT.
        socket.set_reuse_address(true)?;
        if self.address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        if let Some(interface) = interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        socket.bind(&self.address.into())?;
        socket.listen(Listeners::BACKLOG)?;
        let address = socket.local_addr()?.as_socket().unwrap_or(self.address);
        Ok((Self { address, ..*self }, socket))
    }
}

impl Transport {
    fn protocol(self) -> Protocol {
        match self {
            Self::Tcp | Self::Tls => Protocol::TCP,
            Self::Sctp => Protocol::SCTP,
        }
    }
}

impl fmt::Display for Listen {
    /// As in `tcp 127.0.0.1:7626`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
            Transport::Sctp => "sctp",
        };
        write!(f, "{transport} {}", self.address)
    }
}
