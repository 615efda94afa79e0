//! The address of a middlebox, and how to connect to it.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use hol_base::Duration;
use hol_sctp_udp::UDP_PORT;
use hol_simco::PORT;

use crate::{SessionError, Tls};

/// A middlebox that an agent can connect to, written `HOST`, `HOST:PORT` or `[IPV6]:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The name or IP address of the middlebox.
    pub host: String,
    /// The port of the middlebox; `None`: [the default](Transport::port) of the transport.
    pub port: Option<u16>,
    /// The transport of the session.
    pub transport: Transport,
    /// The TLS settings of a TCP connection; `None` without TLS.
    pub tls: Option<Tls>,
    /// The timeout for opening the connection, and for each answer.
    pub timeout: Duration,
}

/// The transport of a session. RFC 4540 section 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP: a byte stream.
    Tcp,
    /// SCTP: user messages on independent streams.
    Sctp,
    /// SCTP in UDP datagrams, for hosts whose kernel has no SCTP. RFC 6951.
    SctpOverUdp,
}

/// Why a text does not name a middlebox to connect to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The text is not a host with an optional port.
    #[error("`{0}` is not a server; write HOST, HOST:PORT or [IPV6]:PORT")]
    Invalid(String),
    /// The text is an IPv6 address whose last part could be a port.
    #[error(
        "`{address}:{port}` is ambiguous; write [{address}]:{port}, or [{address}:{port}] without a port"
    )]
    Ambiguous {
        /// The address without the part that could be a port.
        address: Ipv6Addr,
        /// The part that could be a port.
        port: String,
    },
}

impl Server {
    /// Returns the middlebox on this host, with TCP port 7626 of the loopback interface.
    pub fn local() -> Self {
        Self::new("127.0.0.1", None)
    }

    fn new(host: &str, port: Option<u16>) -> Self {
        let timeout = Duration::from_secs(10);
        Self { host: host.to_owned(), port, transport: Transport::Tcp, tls: None, timeout }
    }

    /// Returns the port to connect to: a port of TCP, SCTP or UDP, depending on the transport.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(self.transport.port())
    }

    /// Resolves the name of the server to addresses.
    pub fn resolve_addresses(&self) -> Result<Vec<SocketAddr>, SessionError> {
        let resolved = (self.host.as_str(), self.port()).to_socket_addrs();
        let unknown = |source| SessionError::UnknownHost { host: self.host.clone(), source };
        Ok(resolved.map_err(unknown)?.collect())
    }
}

impl FromStr for Server {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let parse = || {
            if let Some((host, port)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                address_of(host)?;
                let given = |port: &str| port.strip_prefix(':')?.parse().ok();
                let port = if port.is_empty() { None } else { Some(given(port)?) };
                return Some(Self::new(host, port));
            }
            match text.split_once(':') {
                // An IPv6 address without port needs no brackets.
                Some(_) if address_of(text).is_some() => Some(Self::new(text, None)),
                Some((host, port)) => Some(Self::new(host, Some(port.parse().ok()?))),
                None => Some(Self::new(text, None)),
            }
        };
        if let Some(ambiguous) = ambiguous(text) {
            return Err(ambiguous);
        }
        let is_possible = |server: &Self| !server.host.is_empty() && server.port != Some(0);
        parse().filter(is_possible).ok_or_else(|| ServerError::Invalid(text.to_owned()))
    }
}

/// Parses an IPv6 address, and ignores its zone, such as `%eth0`, which a link-local address needs. RFC 4007 section
/// 11.
fn address_of(text: &str) -> Option<Ipv6Addr> {
    let (address, zone) = text.split_once('%').unwrap_or((text, "none"));
    address.parse().ok().filter(|_| !zone.is_empty() && !zone.contains([':', '%', '/']))
}

/// Returns an error for a text such as `::1:7626`, which is a valid address but was probably meant as an address with a
/// port.
fn ambiguous(text: &str) -> Option<ServerError> {
    text.parse::<Ipv6Addr>().ok()?;
    let (address, port) = text.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let address = address.parse().ok()?;
    Some(ServerError::Ambiguous { address, port: port.to_owned() })
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, transport, tls, .. } = self;
        let port = self.port();
        let over = if tls.is_some() { "TLS" } else { transport.name() };
        if host.contains(':') {
            write!(f, "[{host}]:{port} ({over})")
        } else {
            write!(f, "{host}:{port} ({over})")
        }
    }
}

impl Transport {
    /// Returns the name of the transport in messages to users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Sctp => "SCTP",
            Self::SctpOverUdp => "SCTP over UDP",
        }
    }

    /// Returns the default port of middleboxes for the transport.
    pub const fn port(self) -> u16 {
        match self {
            Self::Tcp | Self::Sctp => PORT,
            Self::SctpOverUdp => UDP_PORT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_with_or_without_a_port() {
        for (text, host, port) in [
            ("fw1", "fw1", None),
            ("fw1:99", "fw1", Some(99)),
            ("::1", "::1", None),
            ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", None),
            ("[::1]", "::1", None),
            ("[::1]:99", "::1", Some(99)),
            ("[fe80::1%eth0]:99", "fe80::1%eth0", Some(99)),
            ("fe80::1%eth0", "fe80::1%eth0", None),
        ] {
            assert_eq!(text.parse(), Ok(Server::new(host, port)), "{text}");
        }
        for text in [
            "",
            ":99",
            "fw1:",
            "fw1:0",
            "fw1:65536",
            "[::1",
            "fe80::1%",
            "[fe80::1%]:9",
            "fe80::1%eth0:9",
            "[fw1]:99",
            "[::1]99",
            "a:b:c",
        ] {
            let error = text.parse::<Server>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
        let over = |transport| Server { transport, ..Server::new("fw1", None) }.port();
        assert_eq!([Transport::Tcp, Transport::Sctp, Transport::SctpOverUdp].map(over), [7626, 7626, 9899]);
        let error = "::1:7626".parse::<Server>().unwrap_err().to_string();
        assert!(error.contains("write [::1]:7626, or [::1:7626] without"), "{error}");
    }
}
