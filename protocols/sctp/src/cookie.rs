//! The state cookie: the state of a passive endpoint, stored by its peer and signed. RFC 9260 section 5.1.3.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use hol_base::Time;
use hol_wire::Address;
use hol_wire::sctp::{
    Asconf, AsconfAck, Cause, ForwardTsn, IData, IForwardTsn, Init, Parameter, Reconfig, Tsn,
};
use smallvec::SmallVec;

use crate::authentication::{AuthOffer, Hash};
use crate::parameters::parameters_to_process;
use crate::secret::Secret;

/// Minimum a_rwnd of a valid INIT in octets. RFC 9260 section 3.3.2.
const MIN_RWND: u32 = 1500;

/// The peer's parameters, from an INIT, an INIT ACK or a cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerParameters {
    /// The peer's verification tag.
    pub(crate) tag: u32,
    /// The peer's initial TSN.
    pub(crate) initial_tsn: Tsn,
    /// The peer's advertised receiver window, in octets.
    pub(crate) a_rwnd: u32,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    /// Whether the peer supports FORWARD TSN. RFC 3758 section 3.1.
    pub(crate) forward_tsn: bool,
    /// Whether the peer lists I-DATA among its extensions. RFC 8260 section 2.2.1.
    pub(crate) i_data: bool,
    /// Whether the peer lists I-FORWARD-TSN among its extensions. RFC 8260 section 2.3.1.
    pub(crate) i_forward_tsn: bool,
    /// Whether the peer supports ECN. RFC 4960 appendix A.
    pub(crate) ecn: bool,
    /// Whether the peer accepts a checksum of zero over DTLS. RFC 9653 section 5.1.
    pub(crate) zero_checksum: bool,
    /// Whether the peer lists RE-CONFIG among its extensions. RFC 6525 section 5.1.1.
    pub(crate) reconfig: bool,
    /// Whether the peer lists ASCONF and ASCONF-ACK among its extensions. RFC 5061 section 4.2.7.
    pub(crate) addip: bool,
    /// The peer's authentication parameters. RFC 4895 section 6.1.
    pub(crate) offer: Option<AuthOffer>,
    /// The source address of the peer's packet, then the addresses that the packet lists.
    pub(crate) addresses: SmallVec<[Address; 2]>,
}

/// The content of a cookie, from which a COOKIE ECHO establishes the association.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cookie {
    /// Our verification tag.
    pub(crate) local_tag: u32,
    /// Our initial TSN.
    pub(crate) initial_tsn: Tsn,
    /// The time when the cookie becomes invalid. RFC 9260 section 5.1.3.
    pub(crate) expires: Time,
    /// Tie-Tags: our verification tag and the peer's in an existing association. RFC 9260 section 5.2.2.
    pub(crate) tie_tags: (u32, u32),
    pub(crate) peer_port: u16,
    pub(crate) peer: PeerParameters,
}

impl PeerParameters {
    /// Reads the peer's parameters from an INIT or INIT ACK; invalid values are an error. RFC 9260 sections 3.3.2,
    /// 3.3.3 and 5.1.2.
    pub(crate) fn new(init: &Init, source: Address) -> Result<Self, Cause> {
        if init.outbound_streams == 0 || init.inbound_streams == 0 || init.a_rwnd < MIN_RWND {
            return Err(Cause::InvalidMandatoryParameter);
        }
        let parameters = parameters_to_process(&init.parameters);
        let lists = |wanted: &[u8]| {
            parameters.iter().any(|parameter| match parameter {
                Parameter::SupportedExtensions(kinds) => wanted.iter().all(|kind| kinds.contains(kind)),
                _ => false,
            })
        };
        Ok(Self {
            tag: init.initiate_tag,
            initial_tsn: init.initial_tsn,
            a_rwnd: init.a_rwnd,
            outbound_streams: init.outbound_streams,
            inbound_streams: init.inbound_streams,
            forward_tsn: parameters.contains(&Parameter::ForwardTsnSupported) || lists(&[ForwardTsn::KIND]),
            i_data: lists(&[IData::KIND]),
            i_forward_tsn: lists(&[IForwardTsn::KIND]),
            ecn: parameters.contains(&Parameter::EcnCapable),
            zero_checksum: parameters.contains(&Parameter::ZeroChecksumAcceptable(Parameter::SCTP_OVER_DTLS)),
            reconfig: lists(&[Reconfig::KIND]),
            addip: lists(&[Asconf::KIND, AsconfAck::KIND]),
            offer: AuthOffer::read(parameters)?,
            addresses: addresses(parameters, source)?,
        })
    }
}

/// Returns the source address of a packet, then the unicast addresses in its INIT or INIT ACK; a host name is
/// refused. RFC 9260 section 5.1.2.
fn addresses(parameters: &[Parameter], source: Address) -> Result<SmallVec<[Address; 2]>, Cause> {
    let mut addresses = SmallVec::from_slice(&[source]);
    for parameter in parameters {
        match parameter {
            Parameter::HostNameAddress(_) => {
                return Err(Cause::UnresolvableAddress(Parameter::list(std::slice::from_ref(parameter))));
            }
            _ => addresses.extend(parameter.address().filter(|address| {
                // Addresses of the other family cannot be reached.
                let is_of_use = is_unicast(*address) && address.is_ipv4() == source.is_ipv4();
                is_of_use && !addresses.contains(address)
            })),
        }
    }
    Ok(addresses)
}

/// Returns whether the address may belong to a single host. RFC 9260 section 8.4.
pub(crate) fn is_unicast(address: Address) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !address.is_multicast() && !is_broadcast && !address.is_unspecified()
}

impl Cookie {
    /// Number of 32-bit words in a cookie before the peer's addresses.
    const FIXED_WORDS: usize = 11;

    /// Encodes the cookie, pads it with zeros to at least `length` octets, and signs it. A zero address ends the list
    /// of addresses.
    pub(crate) fn seal(&self, secret: &Secret, length: usize) -> Bytes {
        let Self { local_tag, initial_tsn, expires, tie_tags, peer_port, peer } = self;
        let streams = u32::from(peer.outbound_streams) << 16 | u32::from(peer.inbound_streams);
        let mut words = vec![*local_tag, initial_tsn.0];
        words.extend([(expires.as_nanos() >> 32) as u32, expires.as_nanos() as u32, tie_tags.0, tie_tags.1]);
        let are_ipv6 = peer.addresses[0].is_ipv6();
        let own = [are_ipv6, peer.zero_checksum, peer.reconfig, peer.i_data, peer.i_forward_tsn, peer.ecn];
        let flags = own.into_iter().chain([peer.offer.is_some(), peer.addip, peer.forward_tsn]);
        words.push(flags.fold(u32::from(*peer_port), |word, flag| word << 1 | u32::from(flag)));
        words.extend([peer.tag, peer.initial_tsn.0, peer.a_rwnd, streams]);
        words.extend(peer.offer.iter().flat_map(AuthOffer::to_words));
        words.extend(peer.addresses.iter().flat_map(|address| words_of(*address)));
        let mut octets: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
        octets.resize(octets.len().max(length.saturating_sub(Secret::SIGNATURE_LENGTH)), 0);
        octets.extend(secret.sign(&octets));
        octets.into()
    }

    /// Decodes a cookie; `None` unless its signature is ours.
    pub(crate) fn open(octets: &[u8], secret: &Secret) -> Option<Self> {
        let (body, signature) = octets.split_last_chunk()?;
        if !secret.is_valid_signature(body, signature) {
            return None;
        }
        let words: Vec<u32> = body.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
        let (offer, addresses) = match words[6] & 0b100 {
            0 => (None, &words[Self::FIXED_WORDS..]),
            _ => {
                AuthOffer::from_words(&words[Self::FIXED_WORDS..]).map(|(offer, rest)| (Some(offer), rest))?
            }
        };
        Some(Self {
            local_tag: words[0],
            initial_tsn: Tsn(words[1]),
            expires: Time::from_nanos(u64::from(words[2]) << 32 | u64::from(words[3])),
            tie_tags: (words[4], words[5]),
            peer_port: (words[6] >> 9) as u16,
            peer: PeerParameters {
                zero_checksum: words[6] & 0b1000_0000 != 0,
                reconfig: words[6] & 0b100_0000 != 0,
                ecn: words[6] & 0b1000 != 0,
                i_data: words[6] & 0b10_0000 != 0,
                i_forward_tsn: words[6] & 0b1_0000 != 0,
                forward_tsn: words[6] & 0b001 != 0,
                addip: words[6] & 0b010 != 0,
                offer,
                tag: words[7],
                initial_tsn: Tsn(words[8]),
                a_rwnd: words[9],
                outbound_streams: (words[10] >> 16) as u16,
                inbound_streams: words[10] as u16,
                addresses: addresses_in(addresses, words[6] & 0b1_0000_0000 != 0),
            },
        })
    }
}

/// Returns an address as 32-bit words, one for IPv4 and four for IPv6, the most significant first.
fn words_of(address: Address) -> SmallVec<[u32; 4]> {
    match address {
        IpAddr::V4(address) => SmallVec::from_slice(&[address.to_bits()]),
        IpAddr::V6(address) => (0..4).rev().map(|place| (address.to_bits() >> (32 * place)) as u32).collect(),
    }
}

/// Returns the addresses in these 32-bit words, up to the first zero address. All addresses have one family.
fn addresses_in(words: &[u32], are_ipv6: bool) -> SmallVec<[Address; 2]> {
    if !are_ipv6 {
        let addresses = words.iter().take_while(|word| **word != 0);
        return addresses.map(|word| Ipv4Addr::from_bits(*word).into()).collect();
    }
    let whole = |words: &[u32; 4]| words.iter().fold(0, |bits, word| bits << 32 | u128::from(*word));
    let addresses = words.as_chunks().0.iter().map(whole).take_while(|bits| *bits != 0);
    addresses.map(|bits| Ipv6Addr::from_bits(bits).into()).collect()
}

impl AuthOffer {
    /// Encodes the offer as 32-bit words: the length of the key vector and the hash, then the vector.
    fn to_words(&self) -> Vec<u32> {
        let mut octets = self.key_vector.to_vec();
        octets.resize(octets.len().next_multiple_of(4), 0);
        let head = (self.key_vector.len() as u32) << 16 | u32::from(self.hash.identifier());
        let vector = octets.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word));
        std::iter::once(head).chain(vector).collect()
    }

    /// Decodes an offer; returns it and the words that follow it. `None` if the offer is incomplete or its hash is
    /// unknown.
    fn from_words(words: &[u32]) -> Option<(Self, &[u32])> {
        let (head, words) = words.split_first()?;
        let length = (head >> 16) as usize;
        let (vector, rest) = words.split_at_checked(length.div_ceil(4))?;
        let octets: Vec<u8> = vector.iter().flat_map(|word| word.to_be_bytes()).take(length).collect();
        Some((Self { key_vector: octets.into(), hash: Hash::of(*head as u16)? }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    #[test]
    fn only_an_unchanged_own_cookie_is_accepted() {
        // RFC 9260 section 5.1.5.
        let mut rng = Seed(1).rng();
        let secret = Secret::new(&mut rng);
        let cookie = Cookie {
            local_tag: 1,
            initial_tsn: Tsn(2),
            expires: Time::from_nanos(0x1234_5678_9abc_def0),
            tie_tags: (3, 4),
            peer_port: 0xfedc,
            peer: PeerParameters {
                tag: 5,
                initial_tsn: Tsn(u32::MAX),
                a_rwnd: 6,
                outbound_streams: 7,
                inbound_streams: 8,
                forward_tsn: true,
                i_data: true,
                i_forward_tsn: false,
                ecn: true,
                zero_checksum: true,
                reconfig: false,
                addip: false,
                offer: None,
                addresses: SmallVec::from_slice(&[hol_wire::ipv4(10, 0, 0, 1), hol_wire::ipv4(10, 1, 0, 1)]),
            },
        };
        let offer = AuthOffer { key_vector: Bytes::from_static(b"a vector."), hash: Hash::Sha256 };
        let offering = PeerParameters {
            addip: true,
            reconfig: true,
            i_forward_tsn: true,
            offer: Some(offer),
            ..cookie.peer.clone()
        };
        for peer in [cookie.peer.clone(), offering] {
            let cookie = Cookie { peer, ..cookie.clone() };
            assert_eq!(Cookie::open(&cookie.seal(&secret, 0), &secret), Some(cookie.clone()));
            let long = cookie.seal(&secret, 228);
            assert_eq!((long.len(), Cookie::open(&long, &secret)), (228, Some(cookie)));
        }
        let sealed = cookie.seal(&secret, 0);
        assert_eq!(Cookie::open(&sealed, &secret), Some(cookie));
        assert_eq!(Cookie::open(&sealed, &Secret::new(&mut rng)), None);
        for index in 0..sealed.len() {
            let mut forged = sealed.to_vec();
            forged[index] ^= 1;
            assert_eq!(Cookie::open(&forged, &secret), None);
            assert_eq!(Cookie::open(&sealed[..index], &secret), None);
        }
    }
}
