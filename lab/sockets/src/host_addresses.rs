//! The IPv4 addresses of the client's host, as its kernel reports them. rtnetlink(7)

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use hol_netlink::{Message, Socket, attributes};

/// The current IPv4 addresses of a host, updated by netlink notifications.
#[derive(Debug)]
pub(crate) struct HostAddresses {
    events: Socket,
    addresses: Vec<IpAddr>,
}

/// An address was added to, or removed from, the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressChange {
    Added(IpAddr),
    Removed(IpAddr),
}

/// Types of netlink messages about routes, and the address family IPv4. linux/rtnetlink.h
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
/// The netlink multicast group for changes of IPv4 routes. The group for changes of addresses would be too early:
/// bind(2) accepts an address only after its local route has been added.
const RTMGRP_IPV4_ROUTE: u32 = 0x40;
const AF_INET: u8 = 2;

impl HostAddresses {
    /// Starts to watch the IPv4 addresses in the network namespace of the calling thread.
    pub(crate) fn watch() -> io::Result<Self> {
        let events = Socket::routing_events(RTMGRP_IPV4_ROUTE)?;
        let mut addresses = Vec::new();
        let all = Message::new(RTM_GETROUTE, 0, &[AF_INET, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        Socket::routing()?.list(all, |route| addresses.extend(local(route)))?;
        Ok(Self { events, addresses })
    }

    /// Returns whether the host has this address.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// Returns the addresses added or removed since the last call.
    pub(crate) fn changes(&mut self) -> io::Result<Vec<AddressChange>> {
        let Self { events, addresses } = self;
        let mut changes = Vec::new();
        events.read_answers(|event| match (event.kind, local(event.body)) {
            (RTM_NEWROUTE, Some(address)) if !addresses.contains(&address) => {
                addresses.push(address);
                changes.push(AddressChange::Added(address));
            }
            (RTM_DELROUTE, Some(address)) if addresses.contains(&address) => {
                addresses.retain(|other| *other != address);
                changes.push(AddressChange::Removed(address));
            }
            _ => {}
        })?;
        Ok(changes)
    }
}

impl AsFd for HostAddresses {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

/// Returns the address of this host to which a local IPv4 route leads; `None` for other routes. linux/rtnetlink.h,
/// `struct rtmsg`.
fn local(route: &[u8]) -> Option<IpAddr> {
    const RTMSG_LENGTH: usize = 12;
    const RTN_LOCAL: u8 = 2;
    const RTA_DST: u16 = 1;
    let (head, rest) = route.split_at_checked(RTMSG_LENGTH)?;
    let is_own = head[1] == 32 && head[7] == RTN_LOCAL;
    let (_, destination) = attributes(rest).find(|(kind, _)| *kind == RTA_DST).filter(|_| is_own)?;
    Some(IpAddr::from(*destination.first_chunk::<4>()?))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use hol_netlink::messages;

    #[test]
    fn a_local_route_is_an_address() {
        let route = |kind| {
            let head = [AF_INET, 32, 0, 0, 255, 2, 254, kind, 0, 0, 0, 0];
            Message::new(RTM_NEWROUTE, 0, &head).with(1, &[10, 0, 2, 1]).with_number(4, 3).finish(0)
        };
        let address = |octets: &[u8]| messages(octets).next().and_then(|message| local(message.body));
        assert_eq!(address(&route(2)), Some(IpAddr::from([10, 0, 2, 1])));
        assert_eq!(address(&route(1)), None);
        assert_eq!(local(&[0; 5]), None);
    }

    #[test]
    fn this_host_has_its_loopback_address() {
        let host_addresses = HostAddresses::watch().unwrap();
        assert!(
            host_addresses.has(Ipv4Addr::LOCALHOST.into())
                && !host_addresses.has(IpAddr::from([192, 0, 2, 1]))
        );
    }
}
