//! A configuration that no endpoint could work with.

/// A value that no endpoint could work with. Its text reads `mss has to be 88 octets at least`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{key} {requirement}")]
pub struct ConfigError {
    /// The key, as the field and the stack file have it.
    pub key: &'static str,
    /// What the value has to be.
    pub requirement: &'static str,
}

impl ConfigError {
    /// Returns an error for the first rule that is broken. A rule: whether it holds, the key, the requirement.
    pub fn check<const N: usize>(rules: [(bool, &'static str, &'static str); N]) -> Result<(), ConfigError> {
        match rules.into_iter().find(|(is_kept, ..)| !is_kept) {
            Some((_, key, requirement)) => Err(Self { key, requirement }),
            None => Ok(()),
        }
    }
}
