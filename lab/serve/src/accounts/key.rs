//! Keys: sessions, tokens and links that are shared. The server keeps their digest only, so its database opens nothing.

use sha2::{Digest, Sha256};

use crate::refusal::Refusal;

/// A key that nobody can guess: 256 bits, in hexadecimal.
pub fn fresh() -> Result<String, Refusal> {
    let mut octets = [0; 32];
    getrandom::fill(&mut octets).map_err(Refusal::internal)?;
    Ok(octets.iter().map(|octet| format!("{octet:02x}")).collect())
}

/// What the database has of it. No salt: a key has no dictionary.
pub fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}
