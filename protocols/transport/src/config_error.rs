//! The error of a configuration that no endpoint can work with.

/// A configuration value with which no endpoint can work, for example `mss must be at least 88 octets`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{key} {requirement}")]
pub struct ConfigError {
    /// Name of the key, as in the configuration and in the stack file.
    pub key: &'static str,
    /// The requirement that the value does not meet.
    pub requirement: &'static str,
}

impl ConfigError {
    /// Checks rules one after another; returns an error for the first rule that is violated. A rule has three
    /// parts: whether it is met, the key, and the requirement.
    pub fn check<const N: usize>(rules: [(bool, &'static str, &'static str); N]) -> Result<(), ConfigError> {
        match rules.into_iter().find(|(is_kept, ..)| !is_kept) {
            Some((_, key, requirement)) => Err(Self { key, requirement }),
            None => Ok(()),
        }
    }
}
