//! Password hashes: argon2id with the default parameters of the crate, which are those that OWASP recommends.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

use crate::refusal::Refusal;

/// Minimum number of characters, the only rule. NIST SP 800-63B, section 5.1.1.2
const MIN_LENGTH: usize = 8;
/// Maximum number of octets, which limits the time to hash a password.
const MAX_LENGTH: usize = 1024;

/// A hash whose password is unknown, for names without an account.
const UNUSED_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$RdescudvJCsgt3ub+b5dWRWJTmaaJObGjpuQYk1zeDk";

#[cfg(test)]
std::thread_local! {
    /// Number of passwords that this thread has hashed, as a measure of time.
    pub static HASHED_PASSWORDS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

fn argon2() -> Argon2<'static> {
    #[cfg(test)]
    HASHED_PASSWORDS.set(HASHED_PASSWORDS.get() + 1);
    Argon2::default()
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
    let hash = argon2().hash_password(password.as_bytes()).map_err(Refusal::internal)?;
    Ok(hash.to_string())
}

/// Returns whether `password` matches `hash`. Without a hash the function takes the same time, so that response times
/// do not reveal which accounts exist.
pub fn verify(password: &str, hash: Option<&str>) -> bool {
    if password.len() > MAX_LENGTH {
        return false;
    }
    let hash = hash.filter(|hash| !hash.is_empty());
    let Ok(parsed) = PasswordHash::new(hash.unwrap_or(UNUSED_HASH)) else {
        return false;
    };
    argon2().verify_password(password.as_bytes(), &parsed).is_ok() && hash.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_matches_only_its_own_hash() {
        let hash = hash("correct horse").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(verify("correct horse", Some(&hash)));
        for wrong in ["", "correct horse ", "Correct horse"] {
            assert!(!verify(wrong, Some(&hash)));
        }
        assert!(PasswordHash::new(UNUSED_HASH).is_ok(), "else it costs no time");
        assert!(!verify("correct horse", None) && !verify("", Some("")));
        assert!(super::hash("short").is_err() && super::hash(&"x".repeat(2000)).is_err());
    }
}
