//! Errors in workload tables.

use crate::simco::RequestMix;

/// Why the keys of a workload are contradictory or invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A key is given that has no meaning if the transport sets the pace.
    #[error("`{0}` has no effect if the transport determines the rate (interval = \"0s\"); remove it")]
    Paced(&'static str),
    /// `rate` and `interval` are both given, which mean the same.
    #[error("`rate` and `interval` both set the time between messages; remove one of them")]
    RateAndInterval,
    /// The number of sources is 0.
    #[error("`sources` is 0; set at least 1")]
    NoSources,
    /// The mix of requests deletes more rules than it enables.
    #[error(
        "`mix` has the weight {} for enable and {} for delete, so it would delete more rules than it enables; raise `enable`, or \
         lower `delete`",
        .0.enable,
        .0.delete
    )]
    Mix(RequestMix),
    /// The keys of the workload `page` are invalid: the problem and the remedy.
    #[error("{0}")]
    Page(&'static str),
    /// The keys of the workload `media` are invalid: the problem and the remedy.
    #[error("{0}")]
    Media(String),
    /// The keys of the workload `replay` are invalid: the problem and the remedy.
    #[error("{0}")]
    Replay(String),
    /// The keys of the workload `rpc` are invalid: the problem and the remedy.
    #[error("{0}")]
    Rpc(&'static str),
    /// The keys of the workload `files` are invalid: the problem and the remedy.
    #[error("{0}")]
    Files(&'static str),
    /// A message size is too small for the length and number of a message, or too large.
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
    /// The minimum size of a message, in octets: its length and its number.
    pub const MIN_SIZE: u64 = 8;
    /// Maximum number of octets of a message.
    pub const MAX_SIZE: u64 = 16 << 20;
}
