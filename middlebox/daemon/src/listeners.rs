//! Listening sockets.

use std::fmt;
use std::io;
use std::net::{SocketAddr, SocketAddrV6};
use std::sync::Arc;

use hol_base::{Duration, Time};
use hol_system::{Interest, Poller};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use rustls::ServerConfig;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::DaemonError;
use crate::event_source::Token;
use crate::message_transport::MessageTransport;
use crate::sctp::Sctp;
use crate::tcp::Tcp;
use crate::tls::Tls;

/// The transport and address of a listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress {
    /// The transport of the socket.
    pub transport: Transport,
    /// The address of the socket; port 0 means any free port.
    pub address: SocketAddr,
    /// Whether the socket accepts only connections over an interface that is protected below IP.
    pub is_protected: bool,
}

/// The transport that carries SIMCO messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP: a byte stream.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// SCTP: messages on independent streams.
    Sctp,
    /// SCTP in UDP datagrams, by the daemon's own SCTP endpoint. RFC 6951.
    SctpOverUdp,
}

/// A new connection of an agent.
#[derive(Debug)]
pub(crate) struct NewConnection {
    /// The listening socket that accepted the connection.
    pub listen: ListenAddress,
    pub line: Box<dyn MessageTransport>,
    pub peer: SocketAddr,
}

/// Parses the address of a socket, such as `127.0.0.1:7626`, `[::1]:7626` or `[fe80::1%eth0]:7626`. A link-local
/// address needs its interface, by name or number (RFC 4007 section 11).
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let cure = "is not an address with a port; write 127.0.0.1:7626, [::1]:7626, or [fe80::1%eth0]:7626";
    let wrong = || format!("`{text}` {cure}");
    let Some((address, rest)) = text.strip_prefix('[').and_then(|text| text.split_once('%')) else {
        let at: SocketAddr = text.parse().map_err(|_| wrong())?;
        return match at {
            SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
                let ip = v6.ip();
                Err(format!(
                    "`{text}`: {ip} is link-local; add its interface, as in [{ip}%eth0]:{}",
                    v6.port()
                ))
            }
            at => Ok(at),
        };
    };
    let (zone, port) = rest.split_once("]:").ok_or_else(wrong)?;
    let (address, port) = address.parse().ok().zip(port.parse().ok()).ok_or_else(wrong)?;
    let index = zone.parse().or_else(|_| if_nametoindex(zone));
    let index =
        index.map_err(|_| format!("`{text}`: no interface {zone}; `ip link` lists the interfaces"))?;
    Ok(SocketAddrV6::new(address, port, 0, index).into())
}

/// The listening sockets of those transports whose connections the kernel accepts.
#[derive(Debug)]
pub(crate) struct Listeners {
    sockets: Vec<(ListenAddress, Socket)>,
    /// The TLS configuration; `None` without TLS.
    tls: Option<Arc<ServerConfig>>,
    /// When to accept connections again, unless a connection closes earlier; [`Time::ZERO`] if accepting is not paused.
    paused_until: Time,
}

impl Listeners {
    /// Maximum number of connections that wait in the kernel to be accepted.
    const BACKLOG: i32 = 1024;
    /// Time after which connections are accepted again if there were too many.
    const RETRY_INTERVAL: Duration = Duration::from_secs(1);

    /// Opens all sockets and lets the poller watch them. Protected sockets are bound to the interface `interface`.
    pub fn open(
        all: &[ListenAddress],
        interface: Option<&str>,
        tls: Option<Arc<ServerConfig>>,
        poller: &Poller<Token>,
    ) -> Result<Self, DaemonError> {
        let open = |listen: &ListenAddress| {
            let interface = interface.filter(|_| listen.is_protected);
            listen.open(interface).map_err(|source| DaemonError::Listen { at: *listen, source })
        };
        let accepted_by_kernel = all.iter().filter(|listen| listen.transport != Transport::SctpOverUdp);
        let sockets = accepted_by_kernel.map(open).collect::<Result<_, _>>()?;
        let listeners = Self { sockets, tls, paused_until: Time::ZERO };
        listeners.watch(poller)?;
        Ok(listeners)
    }

    /// Returns the addresses of the sockets, with the actual ports.
    pub fn addresses(&self) -> impl Iterator<Item = ListenAddress> {
        self.sockets.iter().map(|(listen, _)| *listen)
    }

    /// Replaces the TLS configuration that new connections use.
    pub fn set_tls(&mut self, tls: Option<Arc<ServerConfig>>) {
        self.tls = tls;
    }

    /// Accepts a connection at the socket with the index `number`; `None` if none waits.
    pub fn accept(&self, number: u32) -> io::Result<Option<NewConnection>> {
        let (listen, socket) = &self.sockets[number as usize];
        loop {
            match socket.accept() {
                Ok((socket, peer)) => {
                    // An agent that is gone is skipped, so that others need not wait.
                    if let (Some(peer), Ok(line)) = (peer.as_socket(), self.line(listen.transport, socket)) {
                        return Ok(Some(NewConnection { listen: *listen, line, peer }));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Stops accepting connections for a while.
    pub fn pause(&mut self, now: Time, poller: &Poller<Token>) -> io::Result<()> {
        if self.paused_until == Time::ZERO {
            self.sockets.iter().try_for_each(|(_, socket)| poller.remove(socket))?;
        }
        self.paused_until = now + Self::RETRY_INTERVAL;
        Ok(())
    }

    /// Accepts connections again after a pause.
    pub fn resume(&mut self, poller: &Poller<Token>) -> io::Result<()> {
        if self.paused_until != Time::ZERO {
            self.paused_until = Time::ZERO;
            self.watch(poller)?;
        }
        Ok(())
    }

    /// Makes [`resume`](Self::resume) due at once. Called after a connection has closed.
    pub fn resume_soon(&mut self, now: Time) {
        self.paused_until = self.paused_until.min(now);
    }

    /// Returns when to call [`resume`](Self::resume); [`Time::MAX`] if accepting is not paused.
    pub fn wake_at(&self) -> Time {
        if self.paused_until == Time::ZERO { Time::MAX } else { self.paused_until }
    }

    fn line(&self, transport: Transport, socket: Socket) -> io::Result<Box<dyn MessageTransport>> {
        socket.set_nonblocking(true)?;
        Ok(match (transport, &self.tls) {
            (Transport::Tcp, _) => Box::new(Tcp::new(socket)?),
            (Transport::Tls, Some(config)) => Box::new(Tls::new(socket, config.clone())?),
            (Transport::Tls, None) => unreachable!("settings with a TLS socket have a TLS configuration"),
            (Transport::Sctp, _) => Box::new(Sctp::new(socket)?),
            (Transport::SctpOverUdp, _) => unreachable!("a UDP port accepts its associations itself"),
        })
    }

    fn watch(&self, poller: &Poller<Token>) -> io::Result<()> {
        let mut sockets = self.sockets.iter().zip(0..);
        sockets
            .try_for_each(|((_, socket), number)| poller.add(socket, Token::Listener(number), Interest::Read))
    }
}

impl ListenAddress {
    /// Opens a listening socket; also returns its actual address.
    fn open(&self, interface: Option<&str>) -> io::Result<(Self, Socket)> {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(self.address), kind, Some(self.transport.protocol()))?;
        // Connections of the previous daemon may be in TIME-WAIT.
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

/// Returns true if the kernel has no SCTP.
pub(crate) fn is_sctp_missing() -> bool {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Transport::Sctp.protocol()));
    socket.is_err_and(|error| error.raw_os_error() == Some(Errno::EPROTONOSUPPORT as i32))
}

impl Transport {
    fn protocol(self) -> Protocol {
        match self {
            Self::Tcp | Self::Tls => Protocol::TCP,
            Self::Sctp => Protocol::SCTP,
            Self::SctpOverUdp => Protocol::UDP,
        }
    }
}

impl fmt::Display for ListenAddress {
    /// Formats the transport and the address, as in `tcp 127.0.0.1:7626`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
            Transport::Sctp => "sctp",
            Transport::SctpOverUdp => "sctp-udp",
        };
        write!(f, "{transport} {}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_has_an_interface_by_name_or_number() {
        let index = if_nametoindex("lo").unwrap();
        let expected: SocketAddr = SocketAddrV6::new("fe80::1".parse().unwrap(), 7626, 0, index).into();
        assert_eq!(socket_address("[fe80::1%lo]:7626"), Ok(expected));
        assert_eq!(socket_address(&format!("[fe80::1%{index}]:7626")), Ok(expected));
        assert_eq!(socket_address("[::1]:7626"), Ok("[::1]:7626".parse().unwrap()));
        for (text, cure) in [
            ("[fe80::1]:7626", "[fe80::1%eth0]:7626"),
            ("[fe80::1%none0]:7626", "no interface none0"),
            ("[fe80::1%lo]", "[fe80::1%eth0]:7626"),
            ("fe80::1%lo:7626", "[fe80::1%eth0]:7626"),
            ("[10.0.0.1%lo]:7626", "[fe80::1%eth0]:7626"),
        ] {
            let error = socket_address(text).unwrap_err();
            assert!(error.contains(cure), "{error}");
        }
    }
}
