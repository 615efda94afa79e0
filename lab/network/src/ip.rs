//! `network.ip`: the version of IP of a network.

use std::fmt;
use std::net::Ipv6Addr;

use hol_wire::{Address, Ipv4Header, Ipv6Header, ipv4};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ip {
    /// IP version 4 (RFC 791).
    #[default]
    V4,
    /// IP version 6 (RFC 8200).
    V6,
}

impl Ip {
    /// Returns the length in octets up to which every host must accept packets (RFC 791 section 3.1, RFC 8200 section
    /// 5).
    pub(crate) const fn min_mtu(self) -> u64 {
        match self {
            Self::V4 => 576,
            Self::V6 => 1280,
        }
    }

    /// Returns the address of a host on a segment: 10.0.segment.host, or a unique local address with a prefix
    /// of 64 bits (RFC 4193).
    pub(crate) const fn address(self, segment: u16, host: u8) -> Address {
        let [high, low] = segment.to_be_bytes();
        match self {
            Self::V4 => ipv4(10, high, low, host),
            Self::V6 => Address::V6(Ipv6Addr::new(0xfd00, 0, 0, segment, 0, 0, 0, host as u16)),
        }
    }

    /// Returns whether an address belongs to this version of IP.
    pub(crate) const fn has(self, address: Address) -> bool {
        matches!((self, address), (Self::V4, Address::V4(_)) | (Self::V6, Address::V6(_)))
    }

    /// Returns the length of the IP header in octets.
    pub const fn header_length(self) -> usize {
        match self {
            Self::V4 => Ipv4Header::LENGTH,
            Self::V6 => Ipv6Header::LENGTH,
        }
    }

    /// Returns whether this is the default version of IP.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        })
    }
}
