//! Requests to the kernel's routing subsystem: interfaces, addresses, routes, neighbours. rtnetlink(7)

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use hol_netlink::{CREATE, Message, REPLACE, address_parts};
use hol_network::Ip;
use nix::libc;

use super::GuestError;
use super::namespace::Namespace;
use super::netlink::RoutingSocket;

/// Number of the message that creates an interface. linux/rtnetlink.h
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const RTM_NEWRULE: u16 = 32;

/// The routing table of packets that have passed the shared link of a LAN.
pub(super) const BEHIND_LAN_TABLE: u8 = 100;
/// Linux's main routing table, for all packets to which no other table applies.
pub(super) const MAIN_TABLE: u8 = 254;

/// Returns the number of the routing table for packets from a host's address on the link with index `place`.
pub(super) const fn source_table(place: usize) -> u8 {
    BEHIND_LAN_TABLE + 1 + place as u8
}

/// An interface at one end of a veth pair.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    pub(super) name: String,
    /// The MAC address of the interface.
    pub(super) hardware: [u8; 6],
}

/// Returns a `struct ifinfomsg` of linux/rtnetlink.h.
fn link(index: u32, flags: u32, change: u32) -> Vec<u8> {
    [[0; 4], index.to_ne_bytes(), flags.to_ne_bytes(), change.to_ne_bytes()].concat()
}

/// Creates a veth pair between `own` in this namespace and `peer` in another one.
pub(super) fn create_veth_pair(
    here: &RoutingSocket,
    own: &Interface,
    there: &Namespace,
    peer: &Interface,
    mtu: u32,
) -> Result<(), GuestError> {
    const ADDRESS: u16 = 1;
    const IFNAME: u16 = 3;
    const MTU: u16 = 4;
    const LINKINFO: u16 = 18;
    const NET_NS_FD: u16 = 28;
    const INFO_KIND: u16 = 1;
    const INFO_DATA: u16 = 2;
    const VETH_INFO_PEER: u16 = 1;
    let describe = |message: Message, interface: &Interface| {
        message.with_name(IFNAME, &interface.name).with(ADDRESS, &interface.hardware).with_number(MTU, mtu)
    };
    let message = describe(Message::new(RTM_NEWLINK, CREATE, &link(0, 0, 0)), own);
    let message = message.with_nested(LINKINFO, &[], |info| {
        info.with_name(INFO_KIND, "veth").with_nested(INFO_DATA, &[], |data| {
            data.with_nested(VETH_INFO_PEER, &link(0, 0, 0), |far| {
                let descriptor = there.file.as_raw_fd().cast_unsigned();
                describe(far, peer).with_number(NET_NS_FD, descriptor)
            })
        })
    });
    here.request(message, &format!("create the veth pair {} – {}", own.name, peer.name))
}

/// Brings an interface up. For IPv6, disables multicast and the queries of the interface, because packets of the
/// interface itself (RFC 3810, RFC 4861) would consume numbers of the links' random streams.
pub(super) fn bring_up(here: &RoutingSocket, ip: Ip, index: u32) -> Result<(), GuestError> {
    const UP: u32 = 1;
    const NO_ARP: u32 = 0x80;
    const MULTICAST: u32 = 0x1000;
    let (flags, change) = match ip {
        Ip::V4 => (UP, UP),
        Ip::V6 => (UP | NO_ARP, UP | NO_ARP | MULTICAST),
    };
    here.request(Message::new(RTM_NEWLINK, 0, &link(index, flags, change)), "bring an interface up")
}

/// Adds an address to an interface, without a route to its subnet.
pub(super) fn add_address(here: &RoutingSocket, index: u32, address: IpAddr) -> Result<(), GuestError> {
    here.request(about_address(RTM_NEWADDR, CREATE, index, address), &format!("add the address {address}"))
}

/// Removes an address from an interface. An interface without addresses loses all its routes and neighbours.
pub(super) fn remove_address(here: &RoutingSocket, index: u32, address: IpAddr) -> Result<(), GuestError> {
    here.request(about_address(RTM_DELADDR, 0, index, address), &format!("remove the address {address}"))
}

fn about_address(kind: u16, flags: u16, index: u32, address: IpAddr) -> Message {
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    /// Flag that disables duplicate address detection for an address (RFC 4862 section 5.4). IPv4 ignores this
    /// flag.
    const IFA_F_NODAD: u8 = 2;
    let [a, b, c, d] = index.to_ne_bytes();
    let (family, bits, octets) = address_parts(address);
    let message = Message::new(kind, flags, &[family, bits, IFA_F_NODAD, 0, a, b, c, d]);
    message.with(IFA_LOCAL, &octets).with(IFA_ADDRESS, &octets)
}

/// Adds a route to `address` through an interface and the next hop `next`, with a permanent neighbour entry. Among
/// several routes in a table, Linux uses the one with the lowest `metric`.
pub(super) fn add_route(
    here: &RoutingSocket,
    table: u8,
    metric: u32,
    index: u32,
    address: IpAddr,
    next: [u8; 6],
) -> Result<(), GuestError> {
    here.request(
        route_message(CREATE, table, metric, index, address),
        &format!("add the route to {address}"),
    )?;
    add_neighbour(here, index, address, next)
}

/// Adds a permanent neighbour entry: packets to `address` through this interface go to the MAC address `next`.
pub(super) fn add_neighbour(
    here: &RoutingSocket,
    index: u32,
    address: IpAddr,
    next: [u8; 6],
) -> Result<(), GuestError> {
    const NDA_DST: u16 = 1;
    const NDA_LLADDR: u16 = 2;
    const PERMANENT: u8 = 0x80;
    let (family, _, octets) = address_parts(address);
    let [a, b, c, d] = index.to_ne_bytes();
    let neighbour = [family, 0, 0, 0, a, b, c, d, PERMANENT, 0, 0, 0];
    let message = Message::new(RTM_NEWNEIGH, CREATE, &neighbour).with(NDA_DST, &octets);
    here.request(message.with(NDA_LLADDR, &next), &format!("add the neighbour {address}"))
}

/// Replaces the route to `address` by a route through another interface, which already has a neighbour entry for
/// `address`. The preferred source address of the new route is `source`, which may be an address of another
/// interface.
pub(super) fn change_route(
    here: &RoutingSocket,
    index: u32,
    address: IpAddr,
    source: IpAddr,
) -> Result<(), GuestError> {
    const RTA_PREFSRC: u16 = 7;
    let (_, _, octets) = address_parts(source);
    let message = route_message(CREATE | REPLACE, MAIN_TABLE, 0, index, address).with(RTA_PREFSRC, &octets);
    here.request(message, &format!("change the route to {address}"))
}

fn route_message(flags: u16, table: u8, metric: u32, index: u32, address: IpAddr) -> Message {
    const RTA_DST: u16 = 1;
    const RTA_OIF: u16 = 4;
    const RTA_PRIORITY: u16 = 6;
    const STATIC: u8 = 4;
    const ON_LINK: u8 = 253;
    const UNICAST: u8 = 1;
    let (family, bits, octets) = address_parts(address);
    let route = [family, bits, 0, 0, table, STATIC, ON_LINK, UNICAST, 0, 0, 0, 0];
    let message = Message::new(RTM_NEWROUTE, flags, &route).with(RTA_DST, &octets);
    message.with_number(RTA_OIF, index).with_number(RTA_PRIORITY, metric)
}

/// Makes packets that arrive at `interface` use the table [`BEHIND_LAN_TABLE`].
pub(super) fn use_lan_table(here: &RoutingSocket, ip: Ip, interface: &Interface) -> Result<(), GuestError> {
    const FRA_IIFNAME: u16 = 3;
    let family = if ip == Ip::V4 { libc::AF_INET } else { libc::AF_INET6 };
    here.request(
        rule(family as u8, 0, BEHIND_LAN_TABLE).with_name(FRA_IIFNAME, &interface.name),
        "add a routing rule",
    )
}

/// Makes packets from `address` use `table`.
pub(super) fn use_source_table(here: &RoutingSocket, address: IpAddr, table: u8) -> Result<(), GuestError> {
    const FRA_SRC: u16 = 2;
    let (family, bits, octets) = address_parts(address);
    here.request(
        rule(family, bits, table).with(FRA_SRC, &octets),
        &format!("add a routing rule for {address}"),
    )
}

/// Returns a routing rule with priority over the others. It selects `table` by the first `source_bits` bits of a
/// packet's source address.
fn rule(family: u8, source_bits: u8, table: u8) -> Message {
    const FRA_PRIORITY: u16 = 6;
    const TO_TABLE: u8 = 1;
    let rule = [family, 0, source_bits, 0, table, 0, 0, TO_TABLE, 0, 0, 0, 0];
    Message::new(RTM_NEWRULE, CREATE, &rule).with_number(FRA_PRIORITY, 1)
}
