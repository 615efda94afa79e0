//! Parameters of INIT and INIT ACK. RFC 9260 sections 3.3.2.1 and 3.3.3.1.

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::{Buf, BufMut, Bytes};

use super::tlv;
use crate::{Address, ParseError};

/// A parameter of INIT or INIT ACK.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |        Parameter Type         |       Parameter Length        |
/// +-------------------------------+-------------------------------+
/// |               Parameter Value, padded to four                 |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// An IPv4 address of the sender, RFC 9260 section 3.3.2.1.1.
    Ipv4Address(Ipv4Addr),
    /// An IPv6 address of the sender, RFC 9260 section 3.3.2.1.2.
    Ipv6Address(Ipv6Addr),
    /// State cookie, RFC 9260 section 3.3.3.1.1.
    StateCookie(Bytes),
    /// A parameter of an INIT that was not recognized, RFC 9260 section 3.3.3.1.2.
    Unrecognized(Bytes),
    /// Cookie preservative in milliseconds, RFC 9260 section 3.3.2.1.3.
    CookiePreservative(u32),
    /// A host name, which is deprecated, RFC 9260 section 3.3.2.1.4.
    HostNameAddress(Bytes),
    /// Address types that the sender supports, RFC 9260 section 3.3.2.1.5.
    SupportedAddressTypes(Vec<u16>),
    /// The sender supports ECN. RFC 4960 section 3.3.2 and appendix A.
    EcnCapable,
    /// The sender supports FORWARD TSN. RFC 3758 section 3.1.
    ForwardTsnSupported,
    /// A random number for the association shared key. RFC 4895 section 3.1.
    Random(Bytes),
    /// Chunk types that the sender accepts only if they are authenticated. RFC 4895 section 3.2.
    ChunkList(Vec<u8>),
    /// HMAC identifiers that the sender supports, in order of preference. RFC 4895 section 3.3.
    HmacAlgorithms(Vec<u16>),
    /// Chunk types beyond RFC 9260 that the sender supports. RFC 5061 section 4.2.7.
    SupportedExtensions(Vec<u8>),
    /// The sender accepts a checksum of zero, because a lower layer detects errors by the method with this number.
    /// RFC 9653 section 4.
    ZeroChecksumAcceptable(u32),
    /// A parameter of unknown type.
    Unknown {
        /// Parameter type; its top two bits determine how the receiver handles it.
        kind: u16,
        /// Parameter value.
        value: Bytes,
    },
}

/// Types of the parameters of INIT and INIT ACK.
mod kind {
    pub const IPV4_ADDRESS: u16 = 5;
    pub const IPV6_ADDRESS: u16 = 6;
    pub const STATE_COOKIE: u16 = super::Parameter::STATE_COOKIE;
    pub const UNRECOGNIZED: u16 = 8;
    pub const COOKIE_PRESERVATIVE: u16 = 9;
    pub const HOST_NAME_ADDRESS: u16 = 11;
    pub const SUPPORTED_ADDRESS_TYPES: u16 = 12;
    pub const ECN_CAPABLE: u16 = 0x8000;
    pub const ZERO_CHECKSUM_ACCEPTABLE: u16 = 0x8001;
    pub const RANDOM: u16 = 0x8002;
    pub const CHUNK_LIST: u16 = 0x8003;
    pub const HMAC_ALGORITHMS: u16 = 0x8004;
    pub const SUPPORTED_EXTENSIONS: u16 = 0x8008;
    pub const FORWARD_TSN_SUPPORTED: u16 = 0xC000;
}

impl Parameter {
    /// Parameter type of the state cookie, needed to report that the cookie is missing.
    pub const STATE_COOKIE: u16 = 7;
    /// The error detection method "SCTP over DTLS". RFC 9653 section 6.
    pub const SCTP_OVER_DTLS: u32 = 1;

    /// Returns the parameter for an IPv4 or IPv6 address of the sender.
    pub const fn of_address(address: Address) -> Self {
        match address {
            Address::V4(address) => Self::Ipv4Address(address),
            Address::V6(address) => Self::Ipv6Address(address),
        }
    }

    /// Returns the parameter with the address types of a host: both families if it has IPv6, otherwise only IPv4.
    pub fn address_types(ipv6: bool) -> Self {
        let kinds = [kind::IPV6_ADDRESS, kind::IPV4_ADDRESS];
        Self::SupportedAddressTypes(kinds[usize::from(!ipv6)..].to_vec())
    }

    /// Returns the address in the parameter, if it is an address parameter.
    pub fn address(&self) -> Option<Address> {
        match *self {
            Self::Ipv4Address(address) => Some(address.into()),
            Self::Ipv6Address(address) => Some(address.into()),
            _ => None,
        }
    }

    /// Returns the length of the parameter on the wire in octets, including padding.
    pub fn length(&self) -> usize {
        let value = match self {
            Self::Ipv4Address(_) | Self::CookiePreservative(_) | Self::ZeroChecksumAcceptable(_) => 4,
            Self::Ipv6Address(_) => 16,
            Self::StateCookie(value)
            | Self::Unrecognized(value)
            | Self::HostNameAddress(value)
            | Self::Random(value)
            | Self::Unknown { value, .. } => value.len(),
            Self::EcnCapable | Self::ForwardTsnSupported => 0,
            Self::SupportedExtensions(kinds) | Self::ChunkList(kinds) => kinds.len(),
            Self::SupportedAddressTypes(numbers) | Self::HmacAlgorithms(numbers) => 2 * numbers.len(),
        };
        tlv::HEADER_LENGTH + value.next_multiple_of(4)
    }

    /// Appends the parameter without its padding. A key vector contains parameters in this form. RFC 4895 section
    /// 6.1.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ipv4Address(address) => {
                tlv::put(out, kind::IPV4_ADDRESS, |out| out.put_u32(address.to_bits()));
            }
            Self::Ipv6Address(address) => tlv::put(out, kind::IPV6_ADDRESS, |out| {
                out.put_slice(&address.octets());
            }),
            Self::StateCookie(cookie) => tlv::put(out, kind::STATE_COOKIE, |out| out.put_slice(cookie)),
            Self::Unrecognized(whole) => tlv::put(out, kind::UNRECOGNIZED, |out| out.put_slice(whole)),
            Self::HostNameAddress(name) => tlv::put(out, kind::HOST_NAME_ADDRESS, |out| out.put_slice(name)),
            Self::SupportedAddressTypes(types) => tlv::put(out, kind::SUPPORTED_ADDRESS_TYPES, |out| {
                types.iter().for_each(|kind| out.put_u16(*kind));
            }),
            Self::CookiePreservative(millis) => {
                tlv::put(out, kind::COOKIE_PRESERVATIVE, |out| out.put_u32(*millis));
            }
            Self::Random(number) => tlv::put(out, kind::RANDOM, |out| out.put_slice(number)),
            Self::ChunkList(kinds) => tlv::put(out, kind::CHUNK_LIST, |out| out.put_slice(kinds)),
            Self::HmacAlgorithms(identifiers) => tlv::put(out, kind::HMAC_ALGORITHMS, |out| {
                identifiers.iter().for_each(|identifier| out.put_u16(*identifier));
            }),
            Self::ZeroChecksumAcceptable(method) => {
                tlv::put(out, kind::ZERO_CHECKSUM_ACCEPTABLE, |out| out.put_u32(*method));
            }
            Self::EcnCapable => tlv::put(out, kind::ECN_CAPABLE, |_| ()),
            Self::ForwardTsnSupported => tlv::put(out, kind::FORWARD_TSN_SUPPORTED, |_| ()),
            Self::SupportedExtensions(kinds) => {
                tlv::put(out, kind::SUPPORTED_EXTENSIONS, |out| out.put_slice(kinds));
            }
            Self::Unknown { kind, value } => tlv::put(out, *kind, |out| out.put_slice(value)),
        }
    }

    /// Encodes consecutive parameters as in a chunk, for an error cause. RFC 9260 section 3.3.10.
    pub fn list(parameters: &[Self]) -> Bytes {
        let mut out = Vec::new();
        tlv::put_all(&mut out, parameters, Self::emit);
        out.into()
    }

    pub(super) fn parse(kind: u16, mut value: Bytes) -> Result<Self, ParseError> {
        let numbers = |mut value: Bytes| (0..value.len() / 2).map(|_| value.get_u16()).collect();
        Ok(match (kind, value.len()) {
            (kind::IPV4_ADDRESS, 4) => Self::Ipv4Address(value.get_u32().into()),
            (kind::IPV6_ADDRESS, 16) => Self::Ipv6Address(value.get_u128().into()),
            (kind::STATE_COOKIE, _) => Self::StateCookie(value),
            (kind::UNRECOGNIZED, _) => Self::Unrecognized(value),
            (kind::HOST_NAME_ADDRESS, _) => Self::HostNameAddress(value),
            (kind::SUPPORTED_ADDRESS_TYPES, length) if length % 2 == 0 => {
                Self::SupportedAddressTypes(numbers(value))
            }
            (kind::COOKIE_PRESERVATIVE, 4) => Self::CookiePreservative(value.get_u32()),
            (kind::ZERO_CHECKSUM_ACCEPTABLE, 4) => Self::ZeroChecksumAcceptable(value.get_u32()),
            (kind::ECN_CAPABLE, 0) => Self::EcnCapable,
            (kind::FORWARD_TSN_SUPPORTED, 0) => Self::ForwardTsnSupported,
            (kind::RANDOM, _) => Self::Random(value),
            (kind::CHUNK_LIST, _) => Self::ChunkList(value.to_vec()),
            (kind::HMAC_ALGORITHMS, length) if length % 2 == 0 => Self::HmacAlgorithms(numbers(value)),
            (kind::SUPPORTED_EXTENSIONS, _) => Self::SupportedExtensions(value.to_vec()),
            (
                kind::IPV4_ADDRESS
                | kind::IPV6_ADDRESS
                | kind::SUPPORTED_ADDRESS_TYPES
                | kind::COOKIE_PRESERVATIVE
                | kind::HMAC_ALGORITHMS
                | kind::ZERO_CHECKSUM_ACCEPTABLE
                | kind::ECN_CAPABLE
                | kind::FORWARD_TSN_SUPPORTED,
                _,
            ) => return Err(ParseError::Length),
            _ => Self::Unknown { kind, value },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(parameter: &Parameter) -> Vec<u8> {
        let mut out = Vec::new();
        parameter.emit(&mut out);
        assert_eq!(out.len().next_multiple_of(4), parameter.length());
        let (kind, value) = tlv::take(&mut Bytes::copy_from_slice(&out)).unwrap();
        assert_eq!(Parameter::parse(kind, value).as_ref(), Ok(parameter));
        out
    }

    /// RFC 9260 sections 3.3.2.1 and 3.3.3.1, RFC 3758 section 3.1, RFC 4895 section 3, RFC 5061 section 4.2.7,
    /// RFC 9653 section 4, by hand.
    #[test]
    fn every_parameter_is_laid_out_as_its_rfc_says() {
        let address = Parameter::of_address(crate::ipv4(192, 0, 2, 1));
        assert_eq!(emitted(&address), [0, 5, 0, 8, 192, 0, 2, 1]);
        assert_eq!(emitted(&Parameter::StateCookie(Bytes::from_static(b"abc"))), b"\0\x07\0\x07abc");
        assert_eq!(emitted(&Parameter::CookiePreservative(1000)), [0, 9, 0, 8, 0, 0, 3, 0xe8]);
        assert_eq!(emitted(&Parameter::ForwardTsnSupported), [0xc0, 0, 0, 4]);
        let zero = Parameter::ZeroChecksumAcceptable(Parameter::SCTP_OVER_DTLS);
        assert_eq!(emitted(&zero), [0x80, 1, 0, 8, 0, 0, 0, 1]);
        assert_eq!(emitted(&Parameter::EcnCapable), [0x80, 0, 0, 4]);
        assert_eq!(emitted(&Parameter::SupportedExtensions(vec![192, 130])), [0x80, 8, 0, 6, 192, 130]);
        assert_eq!(emitted(&Parameter::Random(Bytes::from_static(b"xyz"))), b"\x80\x02\0\x07xyz");
        assert_eq!(emitted(&Parameter::ChunkList(vec![193, 128])), [0x80, 3, 0, 6, 193, 128]);
        assert_eq!(emitted(&Parameter::HmacAlgorithms(vec![3, 1])), [0x80, 4, 0, 8, 0, 3, 0, 1]);
        let ipv6 = Parameter::Ipv6Address([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15].into());
        assert_eq!(emitted(&ipv6), [&[0, 6, 0, 20][..], &(0..16).collect::<Vec<u8>>()].concat());
        let unrecognized = Parameter::Unrecognized(Bytes::from_static(&[0xc1, 2, 0, 4]));
        assert_eq!(emitted(&unrecognized), [0, 8, 0, 8, 0xc1, 2, 0, 4]);
        let host = Parameter::HostNameAddress(Bytes::from_static(b"a.b\0"));
        assert_eq!(emitted(&host), b"\0\x0b\0\x08a.b\0");
        assert_eq!(emitted(&Parameter::SupportedAddressTypes(vec![5])), [0, 12, 0, 6, 0, 5]);
        let unknown = Parameter::Unknown { kind: 0x8123, value: Bytes::from_static(&[9]) };
        assert_eq!(emitted(&unknown), [0x81, 0x23, 0, 5, 9]);
    }

    /// RFC 9260 section 3.2.1: each parameter is padded except for the last, whose padding the enclosing length
    /// does not include.
    #[test]
    fn a_list_is_padded_between_its_parameters() {
        let odd = Parameter::Unknown { kind: 0xc001, value: Bytes::from_static(&[9]) };
        let list = Parameter::list(&[odd.clone(), odd]);
        assert_eq!(list[..], [0xc0, 1, 0, 5, 9, 0, 0, 0, 0xc0, 1, 0, 5, 9]);
    }

    #[test]
    fn a_known_parameter_of_a_wrong_length_is_refused() {
        for kind in [
            kind::IPV4_ADDRESS,
            kind::IPV6_ADDRESS,
            kind::SUPPORTED_ADDRESS_TYPES,
            kind::COOKIE_PRESERVATIVE,
            kind::HMAC_ALGORITHMS,
            kind::ZERO_CHECKSUM_ACCEPTABLE,
            kind::ECN_CAPABLE,
            kind::FORWARD_TSN_SUPPORTED,
        ] {
            assert_eq!(Parameter::parse(kind, Bytes::from_static(&[1; 3])), Err(ParseError::Length));
        }
    }
}
