//! A workload that contradicts itself.

use crate::simco::Mix;

/// A workload table that contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A key that means nothing where the transport sets the pace.
    #[error("`{0}` has no meaning where the transport sets the pace (interval = \"0s\"); remove it")]
    Paced(&'static str),
    /// Two keys say the same.
    #[error("`rate` and `interval` are two names of one thing; remove one")]
    RateAndInterval,
    /// Nobody sends.
    #[error("`sources` is 0; a workload needs at least one")]
    NoSources,
    /// Rules that are deleted have to be enabled first.
    #[error(
        "`mix` enables {} and deletes {}: nothing would be left to delete; raise `enable`, or lower `delete`",
        .0.enable,
        .0.delete
    )]
    Mix(Mix),
    /// A page that cannot be.
    #[error("{0}")]
    Page(&'static str),
    /// A medium that cannot be.
    #[error("{0}")]
    Media(String),
    /// Exchanges that cannot be.
    #[error("{0}")]
    Replay(String),
    /// Files that cannot be.
    #[error("{0}")]
    Files(&'static str),
    /// A message must have room for its length and number.
    #[error(
        "`size` is {size} but a message needs at least {} octets and at most {}; choose one between",
        WorkloadError::MIN_SIZE,
        WorkloadError::MAX_SIZE
    )]
    Size {
        /// The size.
        size: u64,
    },
}

impl WorkloadError {
    /// Octets that the length and the number of a message take.
    pub const MIN_SIZE: u64 = 8;
    /// The longest message, in octets.
    pub const MAX_SIZE: u64 = 16 << 20;
}
