//! Address tuples as users write them: `10.0.0.5:5004`, `[2001:db8::/32]:5004-5005`, `any:5004+2`, `any`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use hol_simco::{AddressTuple, Addresses, IpVersion, Location};

/// One end of a flow: hosts and their ports, as the user writes them.
///
/// A host is an IP address, a prefix, or `any`; IPv6 is in brackets. Ports are `:5004`, `:5004-5007` or `:5004+4` (four
/// from 5004 on); `:any` or no port means every port. `*` also means `any`, but shells expand it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowEnd {
    hosts: Hosts,
    ports: Ports,
}

/// The hosts at one end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hosts {
    /// Every host with an address of the IP version that the other end uses.
    Any,
    Prefix(IpAddr, u8),
}

/// The ports at one end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    Any,
    Range { first: u16, count: u16 },
}

/// The error for an invalid end of a flow: the text, the problem, and the correct form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {problem}")]
pub struct FlowEndError {
    text: String,
    problem: &'static str,
}

impl FlowEnd {
    /// Returns the hosts and ports of an address tuple.
    pub fn from_tuple(tuple: &AddressTuple) -> Self {
        match tuple.addresses {
            Addresses::ProtocolsOnly(version) => Self { hosts: every_host(version), ports: Ports::Any },
            Addresses::Full { address, port, port_range } => {
                let ports =
                    if port == 0 { Ports::Any } else { Ports::Range { first: port, count: port_range } };
                Self { hosts: Hosts::Prefix(address, tuple.prefix_length), ports }
            }
        }
    }

    /// Returns the number of consecutive ports; `None` if the end includes every port.
    pub fn port_count(&self) -> Option<u16> {
        match self.ports {
            Ports::Any => None,
            Ports::Range { count, .. } => Some(count),
        }
    }

    fn ip_version(&self) -> Option<IpVersion> {
        match self.hosts {
            Hosts::Any => None,
            Hosts::Prefix(address, _) => Some(IpVersion::of(address)),
        }
    }

    fn tuple(&self, location: Location, protocol: u8, version: IpVersion) -> AddressTuple {
        let hosts = if self.hosts == Hosts::Any { every_host(version) } else { self.hosts };
        let Hosts::Prefix(address, prefix_length) = hosts else { unreachable!("every host is a prefix") };
        let (port, port_range) = match self.ports {
            Ports::Any => (0, 1),
            Ports::Range { first, count } => (first, count),
        };
        let addresses = Addresses::Full { address, port, port_range };
        AddressTuple { location, protocol, prefix_length, addresses }
    }
}

/// Returns the internal (A0) and external (A3) address tuples of a request. The end `any` gets the IP version of the
/// other end; if both are `any`, IPv4.
pub fn tuples(internal: &FlowEnd, external: &FlowEnd, protocol: u8) -> (AddressTuple, AddressTuple) {
    let version = internal.ip_version().or(external.ip_version()).unwrap_or(IpVersion::V4);
    let tuple = |end: &FlowEnd, location| end.tuple(location, protocol, version);
    (tuple(internal, Location::Internal), tuple(external, Location::External))
}

fn every_host(version: IpVersion) -> Hosts {
    match version {
        IpVersion::V4 => Hosts::Prefix(Ipv4Addr::UNSPECIFIED.into(), 0),
        IpVersion::V6 => Hosts::Prefix(Ipv6Addr::UNSPECIFIED.into(), 0),
    }
}

impl FromStr for FlowEnd {
    type Err = FlowEndError;

    fn from_str(text: &str) -> Result<Self, FlowEndError> {
        let parse = || {
            let (hosts, ports) = split(text)?;
            Ok(Self { hosts: parse_hosts(hosts)?, ports: parse_ports(ports)? })
        };
        parse().map_err(|problem| FlowEndError { text: text.to_owned(), problem })
    }
}

const ANY_WORD: &str = "any";

fn is_any(text: &str) -> bool {
    [ANY_WORD, "*"].contains(&text)
}

/// Splits the text of a flow's end into hosts and ports.
fn split(text: &str) -> Result<(&str, &str), &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let (hosts, ports) =
            rest.split_once(']').ok_or("the closing bracket is missing; write [2001:db8::1]:5004")?;
        let is_v6 = hosts.contains(':');
        let ports = if ports.is_empty() { Some(ANY_WORD) } else { ports.strip_prefix(':') };
        return ports.filter(|_| is_v6).map(|ports| (hosts, ports)).ok_or("write [2001:db8::1]:5004");
    }
    match text.matches(':').count() {
        0 => Ok((text, ANY_WORD)),
        1 => Ok(text.split_once(':').expect("the text contains a colon")),
        _ => Err("IPv6 addresses go in brackets: [2001:db8::1]:5004, [2001:db8::/32]"),
    }
}

fn parse_hosts(text: &str) -> Result<Hosts, &'static str> {
    const PROBLEM: &str = "the host is not an IP address; write 10.0.0.5, 10.0.0.0/8, [2001:db8::1] or any";
    if text.contains('%') {
        return Err(
            "link-local addresses (%eth0) are not forwarded, so no rule applies to them; use another address",
        );
    }
    if is_any(text) {
        return Ok(Hosts::Any);
    }
    let (address, bits) = text.split_once('/').unzip();
    let address: IpAddr = address.unwrap_or(text).parse().map_err(|_| PROBLEM)?;
    let all = IpVersion::of(address).address_bits();
    let bits = bits.map_or(Ok(all), str::parse).ok().filter(|bits| *bits <= all);
    bits.map(|bits| Hosts::Prefix(address, bits))
        .ok_or("the prefix length must be 0 to 32 for IPv4, or 0 to 128 for IPv6")
}

fn parse_ports(text: &str) -> Result<Ports, &'static str> {
    const PROBLEM: &str = "ports must be 1 to 65535; write 5004, 5004-5007, 5004+4 (four ports) or any";
    if is_any(text) {
        return Ok(Ports::Any);
    }
    let number = |text: &str| text.parse::<u16>().ok().filter(|number| *number > 0);
    let range = if let Some((first, last)) = text.split_once('-') {
        let (first, last) = number(first).zip(number(last)).ok_or(PROBLEM)?;
        last.checked_sub(first).map(|more| (first, u32::from(more) + 1))
    } else if let Some((first, count)) = text.split_once('+') {
        number(first).zip(number(count).map(u32::from))
    } else {
        number(text).map(|first| (first, 1))
    };
    let (first, count) = range.ok_or(PROBLEM)?;
    let is_possible = u32::from(first) + count - 1 <= u32::from(u16::MAX);
    u16::try_from(count)
        .ok()
        .filter(|_| is_possible)
        .map(|count| Ports::Range { first, count })
        .ok_or(PROBLEM)
}

impl fmt::Display for FlowEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hosts {
            Hosts::Any => f.write_str(ANY_WORD)?,
            hosts if hosts == every_host(IpVersion::V4) => f.write_str(ANY_WORD)?,
            Hosts::Prefix(address, bits) => {
                let is_host = bits == IpVersion::of(address).address_bits();
                let prefix = if is_host { String::new() } else { format!("/{bits}") };
                match address {
                    IpAddr::V4(address) => write!(f, "{address}{prefix}")?,
                    IpAddr::V6(address) => write!(f, "[{address}{prefix}]")?,
                }
            }
        }
        match self.ports {
            Ports::Any => Ok(()),
            Ports::Range { first, count: 1 } => write!(f, ":{first}"),
            Ports::Range { first, count } => {
                write!(f, ":{first}-{}", u32::from(first) + u32::from(count) - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> FlowEnd {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn hosts_prefixes_ranges_and_wildcards_are_read_and_written() {
        for (text, shown) in [
            ("10.0.0.5:5004", "10.0.0.5:5004"),
            ("10.0.0.5:5004+2", "10.0.0.5:5004-5005"),
            ("10.0.0.5:5004-5005", "10.0.0.5:5004-5005"),
            ("10.0.0.0/8:any", "10.0.0.0/8"),
            ("10.0.0.5", "10.0.0.5"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
            ("[2001:db8::/32]", "[2001:db8::/32]"),
            ("any:5004", "any:5004"),
            ("*:*", "any"),
            ("any", "any"),
            ("0.0.0.0/0:65535", "any:65535"),
            ("[::/0]:9", "[::/0]:9"),
        ] {
            assert_eq!(end(text).to_string(), shown, "{text}");
            let (internal, _) = tuples(&end(text), &end("any"), 17);
            assert_eq!(FlowEnd::from_tuple(&internal).to_string(), shown, "{text}");
        }
    }

    /// A wildcard address is a prefix of length 0, and a wildcard port is 0. RFC 4540 section 4.3.8.
    #[test]
    fn a_wildcard_has_the_ip_version_of_the_other_end() {
        let (internal, external) = tuples(&end("any:5004+2"), &end("[2001:db8::1]"), 17);
        let addresses = Addresses::Full { address: Ipv6Addr::UNSPECIFIED.into(), port: 5004, port_range: 2 };
        let expected =
            AddressTuple { location: Location::Internal, protocol: 17, prefix_length: 0, addresses };
        assert_eq!(internal, expected);
        assert_eq!(
            external.addresses,
            Addresses::Full { address: "2001:db8::1".parse().unwrap(), port: 0, port_range: 1 }
        );
        assert_eq!(tuples(&end("any"), &end("any"), 0).0.ip_version(), IpVersion::V4);
    }

    #[test]
    fn invalid_flow_ends_are_refused_with_advice() {
        for (text, advice) in [
            ("", "10.0.0.5"),
            ("fw1:80", "10.0.0.5"),
            ("10.0.0.5:0", "5004"),
            ("10.0.0.5:65536", "65535"),
            ("10.0.0.5:65535+2", "65535"),
            ("10.0.0.5:9-8", "5004-5007"),
            ("10.0.0.5:9+0", "5004+4"),
            ("10.0.0.5:1-65536", "65535"),
            ("10.0.0.0/33:5", "0 to 32"),
            ("2001:db8::1", "[2001:db8::1]"),
            ("[2001:db8::1", "[2001:db8::1]:5004"),
            ("[2001:db8::1]5004", "[2001:db8::1]:5004"),
            ("[10.0.0.5]:5004", "[2001:db8::1]:5004"),
            ("[fe80::1%eth0]:5004", "not forwarded"),
        ] {
            let error = text.parse::<FlowEnd>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}`: ")) && error.contains(advice), "{error}");
        }
    }
}
