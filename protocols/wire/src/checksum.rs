//! The Internet checksum of IPv4, TCP and UDP. RFC 1071.

use crate::Address;

/// The one's complement sum of the 16-bit words added so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InternetChecksum(u64);

impl InternetChecksum {
    /// Adds octets to the sum. Only the last call may add an odd number of octets.
    pub fn add(self, octets: &[u8]) -> Self {
        let (words, odd) = octets.as_chunks::<2>();
        let words: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
        let odd = odd.first().map_or(0, |octet| u64::from(*octet) << 8);
        Self(self.0 + words + odd)
    }

    /// Adds the pseudo header of a transport protocol. RFC 9293 section 3.1. The longer fields of IPv6 (RFC
    /// 8200 section 8.1) have the same sum.
    pub fn add_pseudo_header(
        self,
        source: Address,
        destination: Address,
        protocol: u8,
        length: usize,
    ) -> Self {
        self.add_address(source)
            .add_address(destination)
            .add(&[0, protocol])
            .add(&(length as u32).to_be_bytes())
    }

    fn add_address(self, address: Address) -> Self {
        match address {
            Address::V4(address) => self.add(&address.octets()),
            Address::V6(address) => self.add(&address.octets()),
        }
    }

    /// Returns the checksum; zero if the octets include a correct checksum.
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 section 3: the octets 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
    #[test]
    fn rfc1071_example_has_its_checksum() {
        let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(InternetChecksum::default().add(&octets).finish(), !0xddf2);
        let halves = InternetChecksum::default().add(&octets[..2]).add(&octets[2..]);
        assert_eq!(halves.finish(), !0xddf2);
    }

    /// RFC 1071 section 1: an odd octet counts as if followed by a zero.
    #[test]
    fn an_odd_octet_is_padded_with_zero() {
        let checksum = |octets: &[u8]| InternetChecksum::default().add(octets).finish();
        assert_eq!(checksum(&[1, 2, 3]), checksum(&[1, 2, 3, 0]));
    }
}
