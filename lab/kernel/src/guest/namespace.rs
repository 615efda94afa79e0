//! Network namespaces: one for each host, one for each router.

use std::fs::{self, File};
use std::io;

use hol_network::Ip;
use hol_sockets::setting_path;
use nix::sched::{CloneFlags, setns, unshare};

use super::GuestError;
use super::netlink::RoutingSocket;

/// A network namespace, and a routing socket in it.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) file: File,
    pub(super) routing: RoutingSocket,
}

/// Sysctls of all IPv4 namespaces. They disable IPv6, whose own traffic would consume numbers of the random streams,
/// and the reverse path filter, which would drop packets between two addresses of one subnet.
const IPV4_SYSCTLS: [(&str, &str); 5] = [
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/ip_forward", "1"),
];

/// Sysctls of all IPv6 namespaces. They disable automatic addresses and duplicate address detection (RFC 4862 sections
/// 5.3 and 5.4).
const IPV6_SYSCTLS: [(&str, &str); 4] = [
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/all/forwarding", "1"),
];

impl Namespace {
    /// Creates a namespace, and moves this thread into it.
    pub(super) fn new(ip: Ip) -> Result<Self, GuestError> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|e| format!("cannot create a network namespace: {e}"))?;
        let namespace = Self { file: File::open("/proc/self/ns/net")?, routing: RoutingSocket::open()? };
        for (name, value) in if ip == Ip::V4 { &IPV4_SYSCTLS[..] } else { &IPV6_SYSCTLS } {
            set_sysctl(name, value)?;
        }
        Ok(namespace)
    }

    /// Moves this thread into the namespace.
    pub(super) fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.file, CloneFlags::CLONE_NEWNET)?)
    }
}

/// Sets a sysctl of this thread's namespace.
pub(super) fn set_sysctl(name: &str, value: &str) -> Result<(), GuestError> {
    fs::write(setting_path(name), value).map_err(|e| format!("cannot set {name} to {value:?}: {e}").into())
}

/// Returns the numbers of packets that an interface of this namespace has received and sent; `None` if there
/// is no such interface.
pub(super) fn interface_packets(interface: &str) -> Option<(u64, u64)> {
    parse_counters(&fs::read_to_string("/proc/net/dev").ok()?, interface)
}

/// Parses the table of interfaces in proc(5). Each interface has eight numbers for receiving, then eight for sending;
/// the second of each is the number of packets.
fn parse_counters(table: &str, interface: &str) -> Option<(u64, u64)> {
    let (_, numbers) =
        table.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == interface)?;
    let number = |index: usize| numbers.split_whitespace().nth(index)?.parse().ok();
    Some((number(1)?, number(9)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_an_interface_are_found() {
        let table =
            "Inter-|   Receive\n face |bytes    packets errs\n    c1: 100 5 0 0 0 0 0 0 200 7 0 0 0 0 0 0\n";
        assert_eq!(parse_counters(table, "c1"), Some((5, 7)));
        assert_eq!(parse_counters(table, "c"), None);
    }
}
