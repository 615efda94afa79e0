//! Keys of sessions, tokens and shared links. The server stores only their digests, so a stolen database gives no access.

use sha2::{Digest, Sha256};

use crate::refusal::Refusal;

/// Generates a random key: 256 bits, in hexadecimal.
pub fn generate() -> Result<String, Refusal> {
    let mut octets = [0; 32];
    getrandom::fill(&mut octets).map_err(Refusal::internal)?;
    Ok(octets.iter().map(|octet| format!("{octet:02x}")).collect())
}

/// Returns the digest that the database stores. It needs no salt, because a random key cannot be found by a dictionary attack.
pub fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}
