//! Errors that prevent the daemon from starting, or that stop it.

use std::io;
use std::net::SocketAddr;

use hol_journal::JournalError;

use crate::{LedgerError, Listen, SetupError};

/// Errors that prevent the daemon from starting, or that stop it.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// A socket cannot be opened.
    #[error("cannot listen on {at}: {source}{}", cure(.source))]
    Listen {
        /// Where.
        at: Listen,
        /// The system's error.
        source: io::Error,
    },
    /// The socket for metrics cannot be opened.
    #[error("cannot show metrics at {at}: {source}{}", cure(.source))]
    Metrics {
        /// Where.
        at: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The socket for port mappings cannot be opened.
    #[error("cannot hear hosts (PCP) at {at}: {source}{}", cure(.source))]
    PortMapper {
        /// Where.
        at: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The socket for the standby cannot be opened.
    #[error("cannot listen for the standby at {at}: {source}{}", cure(.source))]
    Standby {
        /// Where.
        at: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Invalid settings.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The packet filter cannot take the rules.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The recorded rules cannot be restored.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An error of the operating system.
    #[error("the event loop: {0}")]
    System(#[from] io::Error),
}

fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; stop the program that has it, or choose another port",
        io::ErrorKind::AddrNotAvailable => "; choose an address of this host",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need CAP_NET_BIND_SERVICE",
        // EPROTONOSUPPORT has no kind of its own.
        _ if error.raw_os_error() == Some(nix::errno::Errno::EPROTONOSUPPORT as i32) => {
            "; load the kernel's module: modprobe sctp"
        }
        _ => "",
    }
}
