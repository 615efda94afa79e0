//! The state cookie: everything a passive endpoint needs, kept by its peer and signed. RFC 9260 section
//! 5.1.3.

use bytes::Bytes;
use hol_base::{Digester, Rng, Time};
use hol_wire::Address;
use hol_wire::sctp::{Init, Parameter, Tsn};
use smallvec::SmallVec;

/// What an INIT, an INIT ACK or a cookie says about the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) tag: u32,
    pub(crate) initial_tsn: Tsn,
    pub(crate) a_rwnd: u32,
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    pub(crate) forward_tsn: bool,
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
    pub(crate) fn new(init: &Init, source: Address) -> Self {
        let mut addresses: SmallVec<[Address; 2]> = SmallVec::from_slice(&[source]);
        for parameter in &init.parameters {
            if let Parameter::Ipv4Address(address) = parameter
                && !addresses.contains(address)
            {
                addresses.push(*address);
            }
        }
        Self {
            tag: init.initiate_tag,
            initial_tsn: init.initial_tsn,
            a_rwnd: init.a_rwnd,
            outbound_streams: init.outbound_streams,
            inbound_streams: init.inbound_streams,
            forward_tsn: init.parameters.contains(&Parameter::ForwardTsnSupported),
            addresses,
        }
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
        words.extend([u32::from(*peer_port) << 1 | u32::from(peer.forward_tsn)]);
        words.extend([peer.tag, peer.initial_tsn.0, peer.a_rwnd, streams]);
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
        Some(Self {
            local_tag: words[0],
            initial_tsn: Tsn(words[1]),
            created: Time::from_nanos(u64::from(words[2]) << 32 | u64::from(words[3])),
            tie_tags: (words[4], words[5]),
            peer_port: (words[6] >> 1) as u16,
            peer: Peer {
                forward_tsn: words[6] & 1 == 1,
                tag: words[7],
                initial_tsn: Tsn(words[8]),
                a_rwnd: words[9],
                outbound_streams: (words[10] >> 16) as u16,
                inbound_streams: words[10] as u16,
                addresses: words[Self::FIXED..].iter().map(|word| Address::from(*word)).collect(),
            },
        })
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
                addresses: SmallVec::from_slice(&[Address::new(10, 0, 0, 1), Address::new(10, 1, 0, 1)]),
            },
        };
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
