//! Why a run could not start.

use std::io;

use hol_filter::FilterError;
use hol_workloads::WorkloadError;

/// A run that could not start.
#[derive(Debug, thiserror::Error)]
pub enum SocketsError {
    /// The kernel does not support an option.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The kernel lacks the protocol.
    #[error("this kernel has no {protocol} ({source}); {cure}")]
    NoProtocol {
        /// The protocol.
        protocol: &'static str,
        /// The remedy.
        cure: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// An end has no address.
    #[error("the {0} has no address; give it at least one")]
    NoAddress(&'static str),
    /// There is nothing to send.
    #[error("`messages` is 0; set at least 1")]
    NoMessages,
    /// The packet filter is not available.
    #[error("packet filter: {0}")]
    Filter(#[from] FilterError),
    /// The workload's table is contradictory.
    #[error("in [workload]: {0}")]
    Workload(#[from] WorkloadError),
    /// The kernel rejected an eventfd. Threads use an eventfd to wake one another.
    #[error(
        "cannot create or use a wake signal (eventfd): {0}; if too many files are open, raise the limit (`ulimit -n`)"
    )]
    WakeSignal(#[from] io::Error),
    /// The kernel rejected a call.
    #[error("cannot {doing}: {source}")]
    Refused {
        /// The attempted operation, such as `set SCTP_RTOINFO`.
        doing: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// An option that the kernel does not support. No option is approximated silently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kernel does not support {option}: {why}")]
pub struct Unsupported {
    /// The option with its value, such as `hystart=false`.
    pub option: String,
    /// The reason, and the fix.
    pub why: &'static str,
}
