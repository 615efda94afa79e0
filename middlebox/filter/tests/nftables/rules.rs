//! Rules for the tests.

use std::net::{IpAddr, SocketAddr};

use hol_base::{Duration, Time};
use hol_simco::{
    Action, AddressTuple, Addresses, AgentId, Binding, Change, Direction, Gid, Location, PerParameters, Pid,
    PortParity, Rule,
};

pub const NOW: Time = Time::from_nanos(1_700_000_000_000_000_000);
pub const UDP: u8 = 17;
pub const TCP: u8 = 6;
pub const ANY: u8 = 0;

/// Parses a tuple such as `10.1.0.2:5004`, `10.1.0.0/24` or `10.1.0.2:5004+2`, two ports.
pub fn tuple(location: Location, protocol: u8, text: &str) -> AddressTuple {
    let (host, count) = text.split_once('+').unwrap_or((text, "1"));
    let (host, length) = host.split_once('/').map_or((host, None), |(host, length)| (host, Some(length)));
    let (address, port) = match host.parse::<SocketAddr>() {
        Ok(host) => (host.ip(), host.port()),
        Err(_) => (host.parse::<IpAddr>().unwrap(), 0),
    };
    let full = if address.is_ipv4() { 32 } else { 128 };
    AddressTuple {
        location,
        protocol,
        prefix_length: length.map_or(full, |length| length.parse().unwrap()),
        addresses: Addresses::Full { address, port, port_range: count.parse().unwrap() },
    }
}

fn rule(pid: u32, action: Action) -> Rule {
    Rule { pid: Pid(pid), owner: AgentId::NOBODY, expires: NOW + Duration::from_secs(60), action }
}

/// Returns a rule that lasts a minute.
pub fn enable(pid: u32, direction: Direction, protocol: u8, internal: &str, external: &str) -> Rule {
    bind(pid, direction, protocol, internal, external, None, None)
}

/// Returns the same rule on a NAT: `outside` is A2, `inside` A1.
pub fn bind(
    pid: u32,
    direction: Direction,
    protocol: u8,
    internal: &str,
    external: &str,
    outside: Option<&str>,
    inside: Option<&str>,
) -> Rule {
    rule(
        pid,
        Action::Enable {
            gid: Gid(pid),
            parameters: PerParameters { parity: PortParity::Any, direction },
            internal: tuple(Location::Internal, protocol, internal),
            external: tuple(Location::External, protocol, external),
            binding: Binding {
                outside: outside.map(|text| tuple(Location::Outside, protocol, text)),
                inside: inside.map(|text| tuple(Location::Inside, protocol, text)),
            },
        },
    )
}

/// Returns a rule that blocks for a minute.
pub fn disable(pid: u32, protocol: u8, internal: &str, external: &str) -> Rule {
    let internal = tuple(Location::Internal, protocol, internal);
    rule(pid, Action::Disable { internal, external: tuple(Location::External, protocol, external) })
}

pub fn begin(rule: Rule) -> Change {
    Change { before: None, after: Some(rule) }
}

pub fn end(rule: Rule) -> Change {
    begin(rule).inverse()
}

pub fn lasting(rule: Rule, time: Duration) -> Rule {
    Rule { expires: NOW + time, ..rule }
}
