//! Finds the outgoing interface for packets to a host in the routing table. rtnetlink(7)

use std::io;
use std::net::IpAddr;

use hol_netlink::{Message, Socket, address_parts, attributes};
use hol_sockets::kernel_setting;

/// An interface of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    /// The kernel's index of the interface.
    pub(super) index: u32,
    pub(super) name: String,
}

/// Returns the interfaces towards client and server, and checks that this router lies between them.
pub(super) fn interfaces_between(client: IpAddr, server: IpAddr) -> Result<[Interface; 2], String> {
    let socket = Socket::routing()
        .map_err(|problem| format!("cannot read the routing table of the router: {problem}"))?;
    let both = [interface_towards(&socket, client)?, interface_towards(&socket, server)?];
    check_different(&both, client, server)?;
    check_forwarding(client)?;
    Ok(both)
}

fn check_different(both: &[Interface; 2], client: IpAddr, server: IpAddr) -> Result<(), String> {
    let [one, other] = both;
    if one.index != other.index {
        return Ok(());
    }
    Err(format!(
        "the router reaches both {client} and {server} through {}, so packets between them would pass the same queue in both directions, or bypass it; use a host with an interface on each side",
        one.name
    ))
}

/// Checks that this host forwards packets.
fn check_forwarding(address: IpAddr) -> Result<(), String> {
    let name = match address {
        IpAddr::V4(_) => "net/ipv4/ip_forward",
        IpAddr::V6(_) => "net/ipv6/conf/all/forwarding",
    };
    let is_on = kernel_setting(name).is_none_or(|value| value != "0");
    let dotted_name = crate::host_properties::dotted_name(name);
    if is_on {
        Ok(())
    } else {
        Err(format!("IP forwarding is off on the router; run `sysctl -w {dotted_name}=1` there"))
    }
}

/// Returns the interface through which packets to `address` leave.
fn interface_towards(socket: &Socket, address: IpAddr) -> Result<Interface, String> {
    const RTM_GETROUTE: u16 = 26;
    const RTA_DST: u16 = 1;
    let (family, bits, octets) = address_parts(address);
    // linux/rtnetlink.h, `struct rtmsg`.
    let question = Message::new(RTM_GETROUTE, 0, &[family, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut route = None;
    socket
        .get(question.with(RTA_DST, &octets), |answer| route = read(answer))
        .map_err(|problem| format!("the router has no route to {address}: {problem}"))?;
    match route {
        Some(Route { is_onward: true, interface }) => {
            let name = name(socket, interface).map_err(|problem| problem.to_string())?;
            Ok(Interface { index: interface, name })
        }
        _ => Err(format!(
            "the router does not forward to {address}; choose a router between the two hosts, not one of them"
        )),
    }
}

/// A route in the kernel's routing table.
struct Route {
    /// Whether the route leads to its destination through a further router.
    is_onward: bool,
    interface: u32,
}

fn read(answer: &[u8]) -> Option<Route> {
    const RTMSG_LENGTH: usize = 12;
    const TYPE_OFFSET: usize = 7;
    const UNICAST: u8 = 1;
    const RTA_OIF: u16 = 4;
    let (structure, rest) = answer.split_at_checked(RTMSG_LENGTH)?;
    let (_, interface) = attributes(rest).find(|(kind, _)| *kind == RTA_OIF)?;
    let interface = u32::from_ne_bytes(*interface.first_chunk()?);
    Some(Route { is_onward: structure[TYPE_OFFSET] == UNICAST, interface })
}

fn name(socket: &Socket, index: u32) -> io::Result<String> {
    const RTM_GETLINK: u16 = 18;
    const IFLA_IFNAME: u16 = 3;
    // linux/rtnetlink.h, `struct ifinfomsg`.
    let question = Message::new(RTM_GETLINK, 0, &[0, index, 0, 0].map(u32::to_ne_bytes).concat());
    let mut name = String::new();
    socket.get(question, |answer| {
        let found = attributes(answer.get(16..).unwrap_or_default()).find(|(kind, _)| *kind == IFLA_IFNAME);
        name = found.map_or(String::new(), |(_, octets)| {
            String::from_utf8_lossy(octets).trim_end_matches('\0').to_owned()
        });
    })?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn an_address_of_this_host_is_refused() {
        let socket = Socket::routing().unwrap();
        let problem = interface_towards(&socket, Ipv4Addr::LOCALHOST.into()).unwrap_err();
        assert!(problem.contains("does not forward to 127.0.0.1"), "{problem}");
        // The first interface of a network namespace.
        assert_eq!(name(&socket, 1).unwrap(), "lo");
    }

    #[test]
    fn one_interface_for_both_directions_is_refused() {
        let eth0 = || Interface { index: 2, name: "eth0".to_owned() };
        let [client, server] = [1, 2].map(|host| IpAddr::from([192, 0, 2, host]));
        let problem = check_different(&[eth0(), eth0()], client, server).unwrap_err();
        assert!(
            problem.contains("192.0.2.1 and 192.0.2.2 through eth0") && problem.contains("each side"),
            "{problem}"
        );
        check_different(&[eth0(), Interface { index: 3, name: "eth1".to_owned() }], client, server).unwrap();
    }
}
