//! Why a filter did not do what it was told.

use std::io;

use hol_simco::Pid;

/// Why no change was made.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The process may not.
    #[error(
        "the kernel lets nobody change nftables without CAP_NET_ADMIN; run as root, or give the capability \
         (systemd: AmbientCapabilities=CAP_NET_ADMIN, a file: setcap cap_net_admin+ep)"
    )]
    NotPermitted,
    /// A kernel without nftables, or without a part of them.
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
    /// One rule is more than the filter can do.
    #[error("rule {}: {why}", .pid.0)]
    Unsupported {
        /// The rule.
        pid: Pid,
        /// What it is that cannot be done.
        why: Unsupported,
    },
    /// Too many kinds of wildcards at a time.
    #[error(
        "rules with {0} different combinations of prefix lengths and wildcards are in force, and each costs every \
         packet a look; use fewer prefix lengths"
    )]
    TooManyShapes(usize),
    /// The kernel refused a change for another reason.
    #[error("nftables refused change {change} of the batch: {source}")]
    Refused {
        /// The first change that it refused, counted from 0.
        change: usize,
        /// Why.
        source: io::Error,
    },
    /// The socket failed.
    #[error("netlink: {0}")]
    Socket(#[from] io::Error),
}

/// What a filter cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// No NAT64 in nftables.
    #[error("nftables do not translate between IPv4 and IPv6")]
    ProtocolTranslation,
    /// Each is an element of its own, in each direction.
    #[error(
        "{flows} pairs of ports are more than the {most} that such a rule may have; use a wildcard port at one end"
    )]
    TooManyPorts {
        /// Pairs of ports, or of blocks of ports.
        flows: usize,
        /// The most of them.
        most: usize,
    },
    /// Middleboxes refuse these themselves.
    #[error("its port ranges do not fit each other")]
    PortRanges,
}
