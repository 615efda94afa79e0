//! Password hashes: argon2id with the default parameters of the crate, which OWASP recommends.

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};

use crate::refusal::Refusal;

/// Minimum number of characters, the only rule. NIST SP 800-63B, section 5.1.1.2
const MIN_LENGTH: usize = 8;
/// Maximum number of octets, which limits the time to hash a password.
const MAX_LENGTH: usize = 1024;

const ALGORITHM: Algorithm = Algorithm::Argon2id;
const VERSION: Version = Version::V0x13;

/// A hash whose password is unknown, for names without an account.
const UNUSED_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$RdescudvJCsgt3ub+b5dWRWJTmaaJObGjpuQYk1zeDk";

#[cfg(test)]
std::thread_local! {
    /// Number of passwords that this thread has hashed, as a measure of time.
    pub static HASHED_PASSWORDS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Capacity of the memory of a hash, in KiB. glibc obtains more than 32 MiB directly from the kernel, and returns it
/// after use. A smaller block would stay allocated in each thread that has ever hashed a password. mallopt(3),
/// `M_MMAP_THRESHOLD`
const MAPPED_BLOCKS: usize = 33 << 10;

/// Hashes a password with the memory that `params` require.
fn argon2(params: &Params, password: &str, salt: &[u8]) -> argon2::Result<[u8; Params::DEFAULT_OUTPUT_LEN]> {
    #[cfg(test)]
    HASHED_PASSWORDS.set(HASHED_PASSWORDS.get() + 1);
    let mut memory = Vec::with_capacity(MAPPED_BLOCKS.max(params.block_count()));
    memory.resize(params.block_count(), Block::new());
    let mut hash = [0; Params::DEFAULT_OUTPUT_LEN];
    let argon2 = Argon2::new(ALGORITHM, VERSION, params.clone());
    argon2.hash_password_into_with_memory(password.as_bytes(), salt, &mut hash, &mut memory[..])?;
    Ok(hash)
}

/// Returns the hash to store for a new password.
pub fn hash(password: &str) -> Result<String, Refusal> {
    if password.chars().count() < MIN_LENGTH {
        return Err(Refusal::bad_request(
            format!("the password has fewer than {MIN_LENGTH} characters"),
            "choose a longer one",
        ));
    }
    if password.len() > MAX_LENGTH {
        return Err(Refusal::bad_request(
            format!("the password has more than {MAX_LENGTH} octets"),
            "choose a shorter one",
        ));
    }
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(Refusal::internal)?;
    let params = Params::default();
    let hash = argon2(&params, password, &salt).map_err(Refusal::internal)?;
    let hash = PasswordHash {
        algorithm: ALGORITHM.ident(),
        version: Some(VERSION.into()),
        params: ParamsString::try_from(&params).map_err(Refusal::internal)?,
        salt: Some(Salt::new(&salt).map_err(Refusal::internal)?),
        hash: Some(Output::new(&hash).map_err(Refusal::internal)?),
    };
    Ok(hash.to_string())
}

/// Returns whether `password` matches `hash`. Without a hash the function takes the same time, so that response times
/// do not reveal which accounts exist.
pub fn verify(password: &str, hash: Option<&str>) -> bool {
    if password.len() > MAX_LENGTH {
        return false;
    }
    let hash = hash.filter(|hash| !hash.is_empty());
    is_hash_of(hash.unwrap_or(UNUSED_HASH), password).unwrap_or(false) && hash.is_some()
}

/// Returns whether `hash` is the hash of a password; `None` if it is no hash of [`ALGORITHM`].
fn is_hash_of(hash: &str, password: &str) -> Option<bool> {
    let parsed = PasswordHash::new(hash).ok()?;
    let computed = argon2(&Params::try_from(&parsed).ok()?, password, parsed.salt.as_ref()?).ok()?;
    // The comparison of outputs takes the same time for all outputs.
    Some(parsed.algorithm == ALGORITHM.ident() && parsed.hash? == Output::new(&computed).ok()?)
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::PasswordHasher;

    use super::*;

    #[test]
    fn password_matches_only_its_own_hash() {
        let hash = hash("correct horse").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(verify("correct horse", Some(&hash)));
        for wrong in ["", "correct horse ", "Correct horse"] {
            assert!(!verify(wrong, Some(&hash)));
        }
        assert_eq!(is_hash_of(UNUSED_HASH, "x"), Some(false), "else it costs no time");
        let made_by_crate = Argon2::default().hash_password(b"correct horse").unwrap().to_string();
        assert!(
            verify("correct horse", Some(&made_by_crate)) && !verify("other horse", Some(&made_by_crate))
        );
        assert!(!verify("correct horse", None) && !verify("", Some("")));
        assert!(super::hash("short").is_err() && super::hash(&"x".repeat(2000)).is_err());
    }
}
