//! Unpredictable values: signatures, tags and nonces. RFC 9260 sections 5.1.3, 5.3.1 and 5.4; RFC 4086.

use hmac::{Hmac, KeyInit, Mac};
use hol_base::Rng;
use sha2::Sha256;

/// A secret key. It is as unpredictable as the random numbers from which it is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Secret(Hmac<Sha256>);

impl Secret {
    /// Creates a secret key from 192 random bits.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let key = [(); 3].map(|()| rng.next_u64().to_be_bytes()).concat();
        Self(Hmac::new_from_slice(&key).expect("HMAC takes keys of every length"))
    }

    /// The length of a signature in octets.
    pub(crate) const SIGNATURE_LENGTH: usize = 16;

    /// Returns the signature of `octets`: the first half of their HMAC-SHA-256. RFC 2104 section 5.
    pub(crate) fn sign(&self, octets: &[u8]) -> [u8; Self::SIGNATURE_LENGTH] {
        let mac = self.0.clone().chain_update(octets).finalize().into_bytes();
        std::array::from_fn(|index| mac[index])
    }

    /// Returns whether `signature` is our signature of these octets.
    pub(crate) fn is_valid_signature(&self, octets: &[u8], signature: &[u8; 16]) -> bool {
        self.0.clone().chain_update(octets).verify_truncated_left(signature).is_ok()
    }

    /// Derives a number from the random number `drawn`. The peer cannot infer later random numbers from the
    /// derived number.
    pub(crate) fn derive_number(&self, drawn: u64) -> u64 {
        self.sign(&drawn.to_be_bytes())
            .iter()
            .take(8)
            .fold(0, |number, octet| number << 8 | u64::from(*octet))
    }

    /// Derives a Verification Tag from the random number `drawn`; the tag is never zero. RFC 9260 section 5.3.1.
    pub(crate) fn derive_tag(&self, drawn: u64) -> u32 {
        ((self.derive_number(drawn) >> 32) as u32).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    #[test]
    fn another_key_gives_other_numbers_and_signatures() {
        // RFC 9260 sections 5.1.3 and 5.3.1: without the key, neither follows from the values that the peer has seen.
        let [one, same, other] = [1, 1, 2].map(|seed| Secret::new(&mut Seed(seed).rng()));
        assert_eq!(
            (one.derive_number(7), one.sign(b"cookie")),
            (same.derive_number(7), same.sign(b"cookie"))
        );
        assert_ne!(one.derive_number(7), other.derive_number(7));
        assert_ne!(one.derive_number(7), one.derive_number(8));
        assert_ne!(one.sign(b"cookie"), other.sign(b"cookie"));
        assert_ne!(one.sign(b"cookie"), one.sign(b"cooking"));
    }

    #[test]
    fn the_signature_is_an_hmac() {
        // RFC 4231 section 4.3, test case 2.
        let secret = Secret(Hmac::new_from_slice(b"Jefe").unwrap());
        let hex: String =
            secret.sign(b"what do ya want for nothing?").iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c7");
    }
}
