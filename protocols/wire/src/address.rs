//! Addresses of either family. RFC 791, RFC 4291.

use std::net::{IpAddr, Ipv4Addr};

use crate::{Ipv4Header, Ipv6Header};

/// An IPv4 or IPv6 address.
pub type Address = IpAddr;

/// Creates an IPv4 address from its octets; usable in constants.
pub const fn ipv4(a: u8, b: u8, c: u8, d: u8) -> Address {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

/// Returns the length in octets of the IP header of a packet to this address, without options and extension
/// headers.
pub const fn ip_header_length(address: Address) -> usize {
    match address {
        IpAddr::V4(_) => Ipv4Header::LENGTH,
        IpAddr::V6(_) => Ipv6Header::LENGTH,
    }
}
