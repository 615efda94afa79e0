//! The state cookie: everything a passive endpoint needs, kept by its peer and signed. RFC 9260 section
//! 5.1.3.

use bytes::Bytes;
use hol_base::{Digester, Rng, Time};
use hol_wire::Address;
use hol_wire::sctp::{Asconf, AsconfAck, Cause, Init, Parameter, Tsn};
use smallvec::SmallVec;

use crate::authentication::{Hash, Offer};

/// What an INIT, an INIT ACK or a cookie says about the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) tag: u32,
    pub(crate) initial_tsn: Tsn,
    pub(crate) a_rwnd: u32,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    pub(crate) forward_tsn: bool,
    /// It lists ASCONF and ASCONF-ACK among its extensions. RFC 5061 section 4.2.7.
    pub(crate) addip: bool,
    /// What it says of authentication. RFC 4895 section 6.1.
    pub(crate) offer: Option<Offer>,
    /// The address that its packet came from, then those that it lists.
    pub(crate) addresses: SmallVec<[Address; 2]>,
}

/// The association that a COOKIE ECHO brings to life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) local_tag: u32,
    pub(crate) initial_tsn: Tsn,
    pub(crate) created: Time,
    /// Tie-Tags: our tag and the peer's of an association that existed already. Section 5.2.2.
    pub(crate) tie_tags: (u32, u32),
    pub(crate) peer_port: u16,
    pub(crate) peer: Peer,
}

/// The key of our cookies. The signature is a keyed hash that stops accidents, not cryptographers.
#[derive(Debug)]
pub(crate) struct Secret(u64);

/// A tag is never zero. Section 5.3.1.
pub(crate) fn random_tag(rng: &mut Rng) -> u32 {
    rng.next_u32().max(1)
}

impl Peer {
    /// An error if it has to be refused for what it says of authentication.
    pub(crate) fn new(init: &Init, source: Address) -> Result<Self, Cause> {
        let mut addresses: SmallVec<[Address; 2]> = SmallVec::from_slice(&[source]);
        for parameter in &init.parameters {
            if let Parameter::Ipv4Address(address) = parameter
                && !addresses.contains(address)
            {
                addresses.push(*address);
            }
        }
        let addip = init.parameters.iter().any(|parameter| match parameter {
            Parameter::SupportedExtensions(kinds) => {
                [Asconf::KIND, AsconfAck::KIND].iter().all(|kind| kinds.contains(kind))
            }
            _ => false,
        });
        Ok(Self {
            tag: init.initiate_tag,
            initial_tsn: init.initial_tsn,
            a_rwnd: init.a_rwnd,
            outbound_streams: init.outbound_streams,
            inbound_streams: init.inbound_streams,
            forward_tsn: init.parameters.contains(&Parameter::ForwardTsnSupported),
            addip,
            offer: Offer::read(&init.parameters)?,
            addresses,
        })
    }
}

impl Cookie {
    /// Words before the peer's addresses.
    const FIXED: usize = 11;

    pub(crate) fn seal(&self, secret: &Secret) -> Bytes {
        let Self { local_tag, initial_tsn, created, tie_tags, peer_port, peer } = self;
        let streams = u32::from(peer.outbound_streams) << 16 | u32::from(peer.inbound_streams);
        let mut words = vec![*local_tag, initial_tsn.0];
        words.extend([(created.as_nanos() >> 32) as u32, created.as_nanos() as u32, tie_tags.0, tie_tags.1]);
        let flags = [peer.offer.is_some(), peer.addip, peer.forward_tsn];
        words.push(flags.iter().fold(u32::from(*peer_port), |word, flag| word << 1 | u32::from(*flag)));
        words.extend([peer.tag, peer.initial_tsn.0, peer.a_rwnd, streams]);
        words.extend(peer.offer.iter().flat_map(Offer::to_words));
        words.extend(peer.addresses.iter().map(|address| u32::from(*address)));
        let signature = secret.sign(&words);
        let octets = words.into_iter().flat_map(u32::to_be_bytes).chain(signature.to_be_bytes());
        octets.collect::<Vec<u8>>().into()
    }

    /// `None` unless we sealed it.
    pub(crate) fn open(octets: &[u8], secret: &Secret) -> Option<Self> {
        let (body, signature) = octets.split_last_chunk::<16>()?;
        let words: Vec<u32> = body.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
        let signed = words.len() * 4 == body.len() && secret.sign(&words) == u128::from_be_bytes(*signature);
        if !signed || words.len() <= Self::FIXED {
            return None;
        }
        let (offer, addresses) = match words[6] & 0b100 {
            0 => (None, &words[Self::FIXED..]),
            _ => Offer::from_words(&words[Self::FIXED..]).map(|(offer, rest)| (Some(offer), rest))?,
        };
        Some(Self {
            local_tag: words[0],
            initial_tsn: Tsn(words[1]),
            created: Time::from_nanos(u64::from(words[2]) << 32 | u64::from(words[3])),
            tie_tags: (words[4], words[5]),
            peer_port: (words[6] >> 3) as u16,
            peer: Peer {
                forward_tsn: words[6] & 0b001 != 0,
                addip: words[6] & 0b010 != 0,
                offer,
                tag: words[7],
                initial_tsn: Tsn(words[8]),
                a_rwnd: words[9],
                outbound_streams: (words[10] >> 16) as u16,
                inbound_streams: words[10] as u16,
                addresses: addresses.iter().map(|word| Address::from(*word)).collect(),
            },
        })
    }
}

impl Offer {
    /// How many octets the key vector has and the hash, then the vector.
    fn to_words(&self) -> Vec<u32> {
        let mut octets = self.key_vector.to_vec();
        octets.resize(octets.len().next_multiple_of(4), 0);
        let head = (self.key_vector.len() as u32) << 16 | u32::from(self.hash.identifier());
        let vector = octets.as_chunks().0.iter().map(|word| u32::from_be_bytes(*word));
        std::iter::once(head).chain(vector).collect()
    }

    /// An offer, and the words behind it.
    fn from_words(words: &[u32]) -> Option<(Self, &[u32])> {
        let (head, words) = words.split_first()?;
        let length = (head >> 16) as usize;
        let (vector, rest) = words.split_at_checked(length.div_ceil(4))?;
        let octets: Vec<u8> = vector.iter().flat_map(|word| word.to_be_bytes()).take(length).collect();
        Some((Self { key_vector: octets.into(), hash: Hash::of(*head as u16)? }, rest))
    }
}

impl Secret {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self(rng.next_u64())
    }

    fn sign(&self, words: &[u32]) -> u128 {
        let mut digester = Digester::new();
        digester.add_all([self.0, words.len() as u64]);
        words.iter().for_each(|word| digester.add(u64::from(*word)));
        digester.add(self.0);
        digester.finish().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    #[test]
    fn only_our_own_unchanged_cookie_opens() {
        // RFC 9260 section 5.1.5.
        let mut rng = Seed(1).rng();
        let secret = Secret::new(&mut rng);
        let cookie = Cookie {
            local_tag: 1,
            initial_tsn: Tsn(2),
            created: Time::from_nanos(0x1234_5678_9abc_def0),
            tie_tags: (3, 4),
            peer_port: 0xfedc,
            peer: Peer {
                tag: 5,
                initial_tsn: Tsn(u32::MAX),
                a_rwnd: 6,
                outbound_streams: 7,
                inbound_streams: 8,
                forward_tsn: true,
                addip: false,
                offer: None,
                addresses: SmallVec::from_slice(&[Address::new(10, 0, 0, 1), Address::new(10, 1, 0, 1)]),
            },
        };
        let offer = Offer { key_vector: Bytes::from_static(b"a vector."), hash: Hash::Sha256 };
        let offering = Peer { addip: true, offer: Some(offer), ..cookie.peer.clone() };
        for peer in [cookie.peer.clone(), offering] {
            let cookie = Cookie { peer, ..cookie.clone() };
            assert_eq!(Cookie::open(&cookie.seal(&secret), &secret), Some(cookie));
        }
        let sealed = cookie.seal(&secret);
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
