//! Errors in workload tables.

use crate::simco::RequestMix;

/// Why the table of a workload is contradictory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A key has no meaning where the transport sets the pace.
    #[error("`{0}` has no effect if the transport determines the rate (interval = \"0s\"); remove it")]
    Paced(&'static str),
    /// Two keys with the same meaning.
    #[error("`rate` and `interval` both set the time between messages; remove one of them")]
    RateAndInterval,
    /// The number of sources is 0.
    #[error("`sources` is 0; set at least 1")]
    NoSources,
    /// More rules are deleted than enabled.
    #[error(
        "`mix` has the weight {} for enable and {} for delete, so it would delete more rules than it enables; raise `enable`, or \
         lower `delete`",
        .0.enable,
        .0.delete
    )]
    Mix(RequestMix),
    /// Invalid keys of the workload `page`: the problem and the remedy.
    #[error("{0}")]
    Page(&'static str),
    /// Invalid keys of the workload `media`: the problem and the remedy.
    #[error("{0}")]
    Media(String),
    /// Invalid keys of the workload `replay`: the problem and the remedy.
    #[error("{0}")]
    Replay(String),
    /// Invalid keys of the workload `rpc`: the problem and the remedy.
    #[error("{0}")]
    Rpc(&'static str),
    /// Invalid keys of the workload `files`: the problem and the remedy.
    #[error("{0}")]
    Files(&'static str),
    /// A message size that is too small for the length and number of a message, or too large.
    #[error(
        "`size` is {size} octets, but a message must have {} to {}; use a size in this range",
        WorkloadError::MIN_SIZE,
        WorkloadError::MAX_SIZE
    )]
    Size {
        /// The configured size in octets.
        size: u64,
    },
}

impl WorkloadError {
    /// Octets of a message's length and number.
    pub const MIN_SIZE: u64 = 8;
    /// Maximum number of octets of a message.
    pub const MAX_SIZE: u64 = 16 << 20;
}
