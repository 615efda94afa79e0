//! Chunk authentication: the parameters of both ends, and the key derived from them. RFC 4895.
//!
//! The endpoint pair shared key is empty. ASCONF and ASCONF-ACK are authenticated in both directions; peers
//! that require authentication of other chunks are not supported.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use hol_wire::sctp::{Asconf, AsconfAck, Auth, Cause, Chunk, Parameter};
use serde::{Deserialize, Serialize};
use sha1::Sha1;
use sha2::Sha256;

/// A hash function for HMACs. RFC 4895 section 3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hash {
    /// SHA-1, which every endpoint must support. RFC 4895 section 6.1.
    Sha1,
    /// SHA-256. RFC 4895 section 3.3.
    Sha256,
}

/// Length of a Random Number in octets. RFC 4895 section 3.1.
const RANDOM_OCTETS: usize = 32;
/// Identifier of the empty endpoint pair shared key. RFC 4895 section 6.2.
const EMPTY_KEY: u16 = 0;

/// The authentication parameters in the INIT or INIT ACK of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuthOffer {
    /// RANDOM, CHUNKS and HMAC-ALGO in their wire format, without padding. RFC 4895 section 6.1.
    pub(crate) key_vector: Bytes,
    /// The first hash in this endpoint's list that we support.
    pub(crate) hash: Hash,
}

/// The keys and hashes with which an association authenticates chunks.
#[derive(Debug)]
pub(crate) struct Authentication {
    /// The association shared key.
    key: Vec<u8>,
    /// The hash function that the peer requires in our HMACs.
    hash: Hash,
    /// The hash function that we require in the peer's HMACs.
    own_hash: Hash,
}

impl Hash {
    /// Returns the HMAC identifier of the hash function.
    pub(crate) const fn identifier(self) -> u16 {
        match self {
            Self::Sha1 => 1,
            Self::Sha256 => 3,
        }
    }

    pub(crate) fn of(identifier: u16) -> Option<Self> {
        [Self::Sha1, Self::Sha256].into_iter().find(|hash| hash.identifier() == identifier)
    }

    const fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    fn hmac(self, key: &[u8], data: &[u8]) -> Bytes {
        fn of<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Bytes {
            let mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of every length");
            Bytes::copy_from_slice(&mac.chain_update(data).finalize().into_bytes())
        }
        match self {
            Self::Sha1 => of::<Hmac<Sha1>>(key, data),
            Self::Sha256 => of::<Hmac<Sha256>>(key, data),
        }
    }
}

/// Returns our parameters, which stay the same for the lifetime of an endpoint; SHA-1 is always included. The
/// caller passes `number`, which returns unpredictable numbers. RFC 4895 section 6.1.
pub(crate) fn own_parameters(hash: Hash, mut number: impl FnMut() -> u64) -> Vec<Parameter> {
    let random: Vec<u8> = (0..RANDOM_OCTETS / 8).flat_map(|_| number().to_be_bytes()).collect();
    let mut hashes = vec![hash.identifier(), Hash::Sha1.identifier()];
    hashes.dedup();
    vec![
        Parameter::Random(random.into()),
        Parameter::ChunkList(vec![Asconf::KIND, AsconfAck::KIND]),
        Parameter::HmacAlgorithms(hashes),
    ]
}

impl AuthOffer {
    /// Reads the parameters of an INIT or INIT ACK. Returns `None` if RANDOM or HMAC-ALGO is missing, or if we
    /// support none of the hashes. An invalid Random Number is an error that aborts the association. RFC 4895
    /// sections 3 and 6.1.
    pub(crate) fn read(parameters: &[Parameter]) -> Result<Option<Self>, Cause> {
        let (mut random, mut chunks, mut algorithms, mut hash) = (None, None, None, None);
        for parameter in parameters {
            match parameter {
                Parameter::Random(number) if number.len() != RANDOM_OCTETS => {
                    let why = Bytes::from_static(b"a Random Number that is not of 32 octets");
                    return Err(Cause::ProtocolViolation(why));
                }
                Parameter::Random(_) => random = Some(parameter),
                Parameter::ChunkList(_) => chunks = Some(parameter),
                Parameter::HmacAlgorithms(identifiers) => {
                    algorithms = Some(parameter);
                    hash = identifiers.iter().find_map(|identifier| Hash::of(*identifier));
                }
                _ => {}
            }
        }
        let (Some(random), Some(algorithms), Some(hash)) = (random, algorithms, hash) else {
            return Ok(None);
        };
        let mut key_vector = Vec::new();
        [Some(random), chunks, Some(algorithms)].iter().flatten().for_each(|part| part.emit(&mut key_vector));
        Ok(Some(Self { key_vector: key_vector.into(), hash }))
    }
}

impl Authentication {
    pub(crate) fn new(own: &AuthOffer, peer: &AuthOffer) -> Self {
        // Section 6.1: the numerically smaller vector comes first. A vector begins with the type of RANDOM, which is
        // not zero, so the longer vector is the larger number.
        let mut vectors = [&own.key_vector, &peer.key_vector];
        vectors.sort_by_key(|vector| (vector.len(), *vector));
        Self { key: vectors.map(|vector| &vector[..]).concat(), hash: peer.hash, own_hash: own.hash }
    }

    /// Returns an AUTH chunk with a zero HMAC, for a packet that is not complete yet. RFC 4895 section 6.2.
    pub(crate) fn empty_auth_chunk(&self) -> Chunk {
        let hmac = Bytes::from_static(&[0; 32]).slice(..self.hash.length());
        Chunk::Auth(Box::new(Auth { shared_key_id: EMPTY_KEY, hmac_id: self.hash.identifier(), hmac }))
    }

    /// Computes the HMAC of a packet's AUTH chunk over that chunk and the chunks after it. RFC 4895 section 6.2.
    pub(crate) fn sign(&self, chunks: &mut [Chunk]) {
        let Some(at) = chunks.iter().position(|chunk| matches!(chunk, Chunk::Auth(_))) else { return };
        let hmac = self.compute_hmac(self.hash, &chunks[at..]);
        if let Chunk::Auth(auth) = &mut chunks[at] {
            auth.hmac = hmac;
        }
    }

    /// Returns whether the first chunk is an AUTH with a valid HMAC. The caller must report an `Err` to the peer.
    /// RFC 4895 section 6.3.
    pub(crate) fn verify(&self, chunks: &[Chunk]) -> Result<bool, Cause> {
        let Some(Chunk::Auth(auth)) = chunks.first() else { return Ok(false) };
        let asked_for = |hash: &Hash| [self.own_hash, Hash::Sha1].contains(hash);
        let hash = Hash::of(auth.hmac_id).filter(asked_for);
        let hash = hash.ok_or(Cause::UnsupportedHmac(auth.hmac_id))?;
        Ok(auth.shared_key_id == EMPTY_KEY && self.compute_hmac(hash, chunks) == auth.hmac)
    }

    /// Computes the HMAC over the AUTH chunk with a zero HMAC and everything after it, padding included. RFC 4895
    /// section 6.2.
    fn compute_hmac(&self, hash: Hash, chunks: &[Chunk]) -> Bytes {
        let mut data = Vec::new();
        let [Chunk::Auth(auth), rest @ ..] = chunks else { unreachable!("the first is AUTH: {chunks:?}") };
        let zero = Bytes::from_static(&[0; 32]).slice(..hash.length());
        Chunk::Auth(Box::new(Auth { hmac: zero, ..Auth::clone(auth) })).emit(&mut data);
        rest.iter().for_each(|chunk| chunk.emit(&mut data));
        hash.hmac(&self.key, &data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    fn offers(hashes: [Hash; 2]) -> [AuthOffer; 2] {
        let mut rng = Seed(1).rng();
        hashes.map(|hash| AuthOffer::read(&own_parameters(hash, || rng.next_u64())).unwrap().unwrap())
    }

    /// RFC 2202 section 3 and RFC 4231 section 4.3, test case 2.
    #[test]
    fn hmac_values_equal_the_rfc_vectors() {
        let (key, data) = (b"Jefe", b"what do ya want for nothing?");
        let hex = |hmac: Bytes| hmac.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
        assert_eq!(hex(Hash::Sha1.hmac(key, data)), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        assert_eq!(
            hex(Hash::Sha256.hmac(key, data)),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    /// RFC 4895 section 6.1: both ends derive the same key, whichever vector is smaller, and each uses the hash
    /// that the other prefers.
    #[test]
    fn both_ends_derive_the_same_key() {
        let [a, b] = offers([Hash::Sha256, Hash::Sha1]);
        let ends = [Authentication::new(&a, &b), Authentication::new(&b, &a)];
        assert_eq!(ends[0].key, ends[1].key);
        assert_eq!(ends.map(|end| end.hash), [Hash::Sha1, Hash::Sha256]);
    }

    /// RFC 4895 section 6.1, by hand: type, length and value of each parameter, the smaller vector first, without
    /// padding.
    #[test]
    fn key_is_the_smaller_vector_then_the_larger() {
        let parameters = |octet| {
            [
                Parameter::HmacAlgorithms(vec![1]),
                Parameter::Random(Bytes::from(vec![octet; 32])),
                Parameter::ChunkList(vec![193, 128]),
            ]
        };
        let [small, large] = [1, 2].map(|octet| AuthOffer::read(&parameters(octet)).unwrap().unwrap());
        let vector = |octet| {
            let random = [&[0x80, 2, 0, 36][..], &[octet; 32]].concat();
            [&random[..], &[0x80, 3, 0, 6, 193, 128], &[0x80, 4, 0, 6, 0, 1]].concat()
        };
        let key = [vector(1), vector(2)].concat();
        assert_eq!(Authentication::new(&large, &small).key, key);
        assert_eq!(Authentication::new(&small, &large).key, key);
    }

    /// RFC 4895 section 6.1: a Random Number without 32 octets aborts the association; if a parameter is missing,
    /// there is no offer.
    #[test]
    fn a_random_number_has_32_octets() {
        let short = Parameter::Random(Bytes::from_static(&[1; 31]));
        assert!(matches!(AuthOffer::read(&[short]), Err(Cause::ProtocolViolation(_))));
        let random = Parameter::Random(Bytes::from_static(&[1; 32]));
        assert_eq!(AuthOffer::read(std::slice::from_ref(&random)), Ok(None));
        assert_eq!(AuthOffer::read(&[random, Parameter::HmacAlgorithms(vec![2, 9])]), Ok(None));
    }

    /// RFC 4895 sections 6.2 and 6.3: the HMAC covers each bit of the chunks after AUTH.
    #[test]
    fn only_chunks_with_a_valid_hmac_are_accepted() {
        for hash in [Hash::Sha1, Hash::Sha256] {
            let [a, b] = offers([hash; 2]);
            let (sender, receiver) = (Authentication::new(&a, &b), Authentication::new(&b, &a));
            let mut chunks = vec![sender.empty_auth_chunk(), Chunk::Heartbeat(Bytes::from_static(b"?"))];
            sender.sign(&mut chunks);
            assert_eq!(receiver.verify(&chunks), Ok(true));
            let forged = [chunks[0].clone(), Chunk::Heartbeat(Bytes::from_static(b"!"))];
            assert_eq!(receiver.verify(&forged), Ok(false));
            assert_eq!(receiver.verify(&chunks[..1]), Ok(false));
            let Chunk::Auth(auth) = &mut chunks[0] else { unreachable!() };
            auth.shared_key_id = 1;
            assert_eq!(receiver.verify(&chunks), Ok(false));
        }
    }

    /// RFC 4895 section 6.3: an algorithm that was not offered is reported.
    #[test]
    fn an_hmac_that_was_not_offered_is_reported() {
        let [a, b] = offers([Hash::Sha1; 2]);
        let receiver = Authentication::new(&b, &a);
        let auth = Auth { shared_key_id: 0, hmac_id: 3, hmac: Bytes::from_static(&[0; 32]) };
        assert_eq!(receiver.verify(&[Chunk::Auth(Box::new(auth))]), Err(Cause::UnsupportedHmac(3)));
    }
}
