//! Errors of a filter.

use std::io;

use hol_simco::Pid;

/// Why no change was made.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The process has no permission.
    #[error(
        "the kernel lets nobody change nftables without CAP_NET_ADMIN; run as root, or give the capability \
         (systemd: AmbientCapabilities=CAP_NET_ADMIN, a file: setcap cap_net_admin+ep)"
    )]
    NotPermitted,
    /// A kernel without nftables, or without a part of it.
    #[error(
        "this kernel lacks a part of nftables ({0}); load the modules nf_tables, nft_ct, nft_nat and nft_chain_nat"
    )]
    Lacking(io::Error),
    /// It belongs to another socket.
    #[error(
        "the table inet {table} belongs to another process, which `nft list table inet {table}` names: stop that, or \
         take another table ([nftables] table = NAME)"
    )]
    Owned {
        /// Its name.
        table: String,
    },
    /// Somebody else deleted the table, or changes it as fast as we do.
    #[error("somebody else changed or deleted the table inet {table}; reconcile mends it")]
    Changed {
        /// Its name.
        table: String,
    },
    /// The filter does not support a rule.
    #[error("rule {}: {why}", .pid.0)]
    Unsupported {
        /// The rule.
        pid: Pid,
        /// The reason.
        why: Unsupported,
    },
    /// Too many combinations of wildcards.
    #[error(
        "rules with {0} different combinations of prefix lengths and wildcards are in force, and each costs every \
         packet a look; use fewer prefix lengths"
    )]
    TooManyShapes(usize),
    /// The kernel refused changes for another reason.
    #[error("nftables refused {} of the changes: {source}", .changes.len())]
    Refused {
        /// The rejected changes, counted from 0; at least one.
        changes: Vec<usize>,
        /// True if the kernel may accept them later.
        is_transient: bool,
        /// The cause.
        source: io::Error,
    },
    /// The socket failed.
    #[error("netlink: {0}")]
    Socket(#[from] io::Error),
}

/// What a filter does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// nftables has no NAT64.
    #[error("nftables do not translate between IPv4 and IPv6")]
    ProtocolTranslation,
    /// Each pair of ports is an element, in each direction.
    #[error(
        "{flows} pairs of ports are more than the {most} that such a rule may have; use a wildcard port at one end"
    )]
    TooManyPorts {
        /// Pairs of ports, or of blocks of ports.
        flows: usize,
        /// Their maximum.
        most: usize,
    },
    /// Middleboxes refuse these themselves.
    #[error("its port ranges do not fit each other")]
    PortRanges,
}
