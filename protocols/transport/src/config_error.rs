//! The error of a configuration that no endpoint can work with.

/// A configuration value that no endpoint can work with, for example `mss must be at least 88 octets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{key} {requirement}")]
pub struct ConfigError {
    /// Name of the key, as in the configuration and in the stack file.
    pub key: &'static str,
    /// The requirement that the value violates.
    pub requirement: &'static str,
}

impl ConfigError {
    /// Checks the rules one after another, and returns an error for the first violated rule. A rule has three parts:
    /// whether it holds, the key, the requirement.
    pub fn check<const N: usize>(rules: [(bool, &'static str, &'static str); N]) -> Result<(), ConfigError> {
        match rules.into_iter().find(|(is_kept, ..)| !is_kept) {
            Some((_, key, requirement)) => Err(Self { key, requirement }),
            None => Ok(()),
        }
    }
}
