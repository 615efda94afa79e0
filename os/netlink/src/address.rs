//! Converts IP addresses to the form of netlink messages.

use std::net::IpAddr;

use nix::libc;

/// Splits an address for routing messages: address family, length in bits, and octets.
pub fn address_parts(address: IpAddr) -> (u8, u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, 32, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, 128, address.octets().to_vec()),
    }
}
