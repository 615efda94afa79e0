//! Why a run could not begin.

use std::io;

use hol_filter::FilterError;
use hol_workloads::WorkloadError;

/// A run that could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SocketsError {
    /// The kernel cannot do what was asked for.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The kernel does not have the protocol.
    #[error("this kernel has no {protocol} ({source}); {cure}")]
    NoProtocol {
        /// The protocol.
        protocol: &'static str,
        /// What to do.
        cure: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// An end has no address.
    #[error("the {0} has no address; it needs at least one")]
    NoAddress(&'static str),
    /// There is nothing to send.
    #[error("`messages` is 0; a run needs at least one")]
    NoMessages,
    /// The packet filter cannot be had.
    #[error("packet filter: {0}")]
    Filter(#[from] FilterError),
    /// The workload's table contradicts itself.
    #[error("in [workload]: {0}")]
    Workload(#[from] WorkloadError),
    /// The kernel refused what ties a run to others.
    #[error("cannot tie a run to others: {0}")]
    Tie(#[from] io::Error),
    /// The kernel refused a call.
    #[error("cannot {doing}: {source}")]
    Refused {
        /// What was attempted, such as `set SCTP_RTOINFO`.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// What the kernel cannot do. Nothing is ever approximated in silence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kernel cannot honour {option}: {why}")]
pub struct Unsupported {
    /// The option with its value, such as `hystart=false`.
    pub option: String,
    /// Why not, and what to do.
    pub why: &'static str,
}
