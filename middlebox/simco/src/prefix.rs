//! IP address prefixes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::IpVersion;

/// All addresses of one IP version that start with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// The text is not an address prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an address prefix; write an address, a slash and a number of bits: 10.0.0.0/8, 2001:db8::/32"
)]
pub struct PrefixError(String);

impl Prefix {
    /// Creates the prefix of the first `length` bits of `address`; `None` if the address has fewer bits.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        (length <= IpVersion::of(address).address_bits()).then_some(Self { address, length })
    }

    /// Returns the prefix of length zero, which contains all addresses of this version.
    pub const fn all(version: IpVersion) -> Self {
        let address = match version {
            IpVersion::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpVersion::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self { address, length: 0 }
    }

    /// Returns an address with this prefix; its other bits have no meaning.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the length of the prefix in bits.
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Returns true if every address of `other` is in this prefix.
    pub fn covers(&self, other: &Self) -> bool {
        self.length <= other.length && self.shares_bits(other, self.length)
    }

    /// Returns true if some address is in both prefixes.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.shares_bits(other, self.length.min(other.length))
    }

    /// Returns the range of addresses with this prefix.
    fn addresses(&self) -> RangeInclusive<IpAddr> {
        let length = u32::from(self.length);
        match self.address {
            IpAddr::V4(address) => {
                let rest = u32::MAX.checked_shr(length).unwrap_or(0);
                let (first, last) = (address.to_bits() & !rest, address.to_bits() | rest);
                Ipv4Addr::from_bits(first).into()..=Ipv4Addr::from_bits(last).into()
            }
            IpAddr::V6(address) => {
                let rest = u128::MAX.checked_shr(length).unwrap_or(0);
                let (first, last) = (address.to_bits() & !rest, address.to_bits() | rest);
                Ipv6Addr::from_bits(first).into()..=Ipv6Addr::from_bits(last).into()
            }
        }
    }

    /// Returns the first address of the prefix, which identifies the prefix among those of the same length.
    pub(crate) fn first(&self) -> IpAddr {
        *self.addresses().start()
    }

    /// Returns the first addresses of all prefixes with `length` bits that overlap with this prefix, as a range. The
    /// range is a single address if `length` is at most the length of this prefix.
    pub(crate) fn overlapping(&self, length: u8) -> RangeInclusive<IpAddr> {
        if length > self.length {
            return self.addresses();
        }
        let only = Self { length, ..*self }.first();
        only..=only
    }

    fn shares_bits(&self, other: &Self, length: u8) -> bool {
        let differing = match (self.address, other.address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
            (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
            _ => return false,
        };
        differing.leading_zeros() >= u32::from(length)
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let parse = || {
            let (address, length) = text.split_once('/')?;
            Self::new(address.parse().ok()?, length.parse().ok()?)
        };
        parse().ok_or_else(|| PrefixError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_overlap_if_one_covers_the_other() {
        let (net, host) = (prefix("10.1.0.0/16"), prefix("10.1.2.3/32"));
        assert!(net.covers(&host) && !host.covers(&net));
        assert!(net.overlaps(&host) && host.overlaps(&net));
        assert!(!net.overlaps(&prefix("10.2.0.0/16")));
        assert!(prefix("::/0").covers(&prefix("2001:db8::/32")));
    }

    #[test]
    fn ip_versions_have_no_address_in_common() {
        assert!(!prefix("0.0.0.0/0").overlaps(&prefix("::/0")));
    }

    #[test]
    fn an_invalid_prefix_is_refused_with_advice() {
        for text in ["10.0.0.0", "10.0.0.0/33", "::/129", "ten/8", "/8"] {
            let error = text.parse::<Prefix>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("10.0.0.0/8"), "{error}");
        }
    }
}
