//! Errors that prevent the daemon from starting, or that stop it.

use std::io;
use std::net::SocketAddr;

use hol_journal::JournalError;

use crate::{ListenAddress, RuleStoreError, SetupError};

/// Errors that prevent the daemon from starting, or that stop it.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// A socket cannot be opened.
    #[error("cannot listen on {at}: {source}{}", advice(.source))]
    Listen {
        /// The address of the socket.
        at: ListenAddress,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The socket for metrics cannot be opened.
    #[error("cannot serve metrics on {at}: {source}{}", advice(.source))]
    Metrics {
        /// The address of the metrics.
        at: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The socket for port mappings cannot be opened.
    #[error("cannot listen for PCP requests on {at}: {source}{}", advice(.source))]
    PortMapper {
        /// The address for port mappings.
        at: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The socket for the standby cannot be opened.
    #[error("cannot listen for the standby on {at}: {source}{}", advice(.source))]
    Standby {
        /// The address for the standby.
        at: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The settings of the daemon are invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The packet filter cannot enforce the rules, or they cannot be recorded.
    #[error(transparent)]
    RuleStore(#[from] RuleStoreError),
    /// The rules in the journal cannot be restored.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A system call failed.
    #[error("the event loop failed: {0}")]
    System(#[from] io::Error),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; stop the program that uses the port, or choose another port",
        io::ErrorKind::AddrNotAvailable => "; choose an address of this host",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need CAP_NET_BIND_SERVICE",
        // EPROTONOSUPPORT has no kind of its own.
        _ if error.raw_os_error() == Some(nix::errno::Errno::EPROTONOSUPPORT as i32) => {
            "; load the kernel's module (modprobe sctp), or use SCTP over UDP, which needs none (listen-sctp-udp)"
        }
        _ => "",
    }
}
