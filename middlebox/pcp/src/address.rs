//! Encodes and parses addresses in 128 bits: IPv4 is mapped into IPv6. RFC 6887 section 5.

use std::net::{IpAddr, Ipv6Addr};

use bytes::BufMut;

pub(crate) fn parse(octets: [u8; 16]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
}

pub(crate) fn put(out: &mut Vec<u8>, address: IpAddr) {
    out.put_slice(&mapped_v6(address).octets());
}

fn mapped_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
