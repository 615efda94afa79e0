//! Socket options that IPv4 and IPv6 name differently. ip(7), ipv6(7)

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::c_int;

/// The numbers of socket options for one version of IP.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IpOptions {
    /// The level of these socket options and of their ancillary data: IPPROTO_IP or IPPROTO_IPV6.
    pub(crate) level: c_int,
    /// The option that returns the path MTU of a connected socket: IP_MTU or IPV6_MTU.
    pub(crate) mtu: c_int,
    /// The option that controls fragmentation: IP_MTU_DISCOVER or IPV6_MTU_DISCOVER.
    pub(crate) mtu_discover: c_int,
    /// The option that sets the header octet with the ECN field of sent packets: IP_TOS or IPV6_TCLASS.
    pub(crate) service: c_int,
    /// The option that makes the kernel return the header octet with the ECN field of each received datagram:
    /// IP_RECVTOS or IPV6_RECVTCLASS.
    pub(crate) report_service: c_int,
}

const IPV4_OPTIONS: IpOptions = IpOptions {
    level: libc::IPPROTO_IP,
    mtu: libc::IP_MTU,
    mtu_discover: libc::IP_MTU_DISCOVER,
    service: libc::IP_TOS,
    report_service: libc::IP_RECVTOS,
};

const IPV6_OPTIONS: IpOptions = IpOptions {
    level: libc::IPPROTO_IPV6,
    mtu: libc::IPV6_MTU,
    mtu_discover: libc::IPV6_MTU_DISCOVER,
    service: libc::IPV6_TCLASS,
    report_service: libc::IPV6_RECVTCLASS,
};

/// Returns the unspecified address of the same version as `address`.
pub(crate) const fn unspecified(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

impl IpOptions {
    /// Returns the option numbers for the IP version of this address.
    pub(crate) const fn of(address: IpAddr) -> &'static Self {
        match address {
            IpAddr::V4(_) => &IPV4_OPTIONS,
            IpAddr::V6(_) => &IPV6_OPTIONS,
        }
    }

    /// Returns the header octet with the ECN field if this item of ancillary data contains it.
    pub(crate) fn ecn_octet(level: c_int, kind: c_int, value: &[u8]) -> Option<u8> {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_TOS) => value.first().copied(),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                Some(c_int::from_ne_bytes(*value.first_chunk()?) as u8)
            }
            _ => None,
        }
    }
}
