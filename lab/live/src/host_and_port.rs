//! The address of another host, and its role.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Default port of `hol live serve`.
pub const DEFAULT_PORT: u16 = 7640;

/// The name or address of a host, and the port of its control channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostAndPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl FromStr for HostAndPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "the other host is {text:?}; write HOST or HOST:PORT, as in 192.0.2.7 or lab2.example:7640, IPv6 in brackets: [2001:db8::7]"
            )
        };
        let (host, rest) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) if host.parse::<Ipv6Addr>().is_ok() => (host, rest),
            _ => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port > 0),
            None => rest.is_empty().then_some(DEFAULT_PORT),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || ['.', '-', '_'].contains(&c);
        let is_host = host.parse::<Ipv6Addr>().is_ok() || !host.is_empty() && host.chars().all(is_name);
        let port = port.filter(|_| is_host).ok_or_else(wrong)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostAndPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]") } else { f.write_str(host) }?;
        if *port == DEFAULT_PORT { Ok(()) } else { write!(f, ":{port}") }
    }
}

/// The role of another host in a live run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostRole {
    /// The host runs the other ends of flows.
    Serves,
    /// The host lies between the ends of the flows and emulates the path.
    Routes,
}

impl HostRole {
    /// Returns the name of the role, which is also the name of the flag that gives such a host.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Serves => "peer",
            Self::Routes => "router",
        }
    }

    /// Returns the command that must run on a host with this role.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Serves => "hol live serve",
            Self::Routes => "hol live route",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_host_with_an_optional_port() {
        let place = |text: &str| text.parse::<HostAndPort>();
        assert_eq!(
            place("192.0.2.7").unwrap(),
            HostAndPort { host: "192.0.2.7".to_owned(), port: DEFAULT_PORT }
        );
        assert_eq!(place("lab2.example:99").unwrap().to_string(), "lab2.example:99");
        assert_eq!(place(&format!("lab2:{DEFAULT_PORT}")).unwrap().to_string(), "lab2");
        let ipv6 = HostAndPort { host: "2001:db8::7".to_owned(), port: 99 };
        assert_eq!(
            (place("[2001:db8::7]:99").unwrap(), ipv6.to_string()),
            (ipv6, "[2001:db8::7]:99".to_owned())
        );
        assert_eq!(place("[::1]").unwrap().to_string(), "[::1]");
        for wrong in [
            "", ":7", "a:", "a:0", "a:70000", "a:7:8", "::1", "[::1", "[a]", "[::1]7", "[::1]:0", "a b",
            "a/b", "x:-1",
        ] {
            assert!(place(wrong).unwrap_err().contains("HOST:PORT"), "{wrong}");
        }
    }
}
