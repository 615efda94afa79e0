//! Reset tokens and address validation, without cryptography, because there is no attacker here.

use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};

/// A key that signs stateless resets. RFC 9000 section 10.3.
pub(crate) struct ResetKey;

impl HmacKey for ResetKey {
    /// Writes a signature that no packet of this endpoint ends with: the tag of a packet starts with a packet
    /// number, which is below 2^62.
    fn sign(&self, _: &[u8], signature: &mut [u8]) {
        signature.fill(0xff);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        if signature.iter().all(|octet| *octet == 0xff) { Ok(()) } else { Err(CryptoError) }
    }
}

/// A key that seals tokens of Retry and NEW_TOKEN, which this endpoint does not send. RFC 9000 section 8.1.
pub(crate) struct TokenKey;

impl HandshakeTokenKey for TokenKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(NoToken)
    }
}

struct NoToken;

impl AeadKey for NoToken {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}
