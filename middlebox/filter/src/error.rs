//! Errors of a filter.

use std::io;

use hol_simco::Pid;

/// Why the filter was not changed.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The process has no permission.
    #[error(
        "changing nftables needs CAP_NET_ADMIN; run as root, or grant the capability \
         (systemd: AmbientCapabilities=CAP_NET_ADMIN, a file: setcap cap_net_admin+ep)"
    )]
    NotPermitted,
    /// The kernel has no nftables, or lacks a part of it.
    #[error(
        "this kernel lacks a part of nftables ({0}); load the modules nf_tables, nft_ct, nft_nat and nft_chain_nat"
    )]
    MissingFeature(io::Error),
    /// The kernel lacks memory, or rearranges a set.
    #[error("nftables refused the changes for now ({0}); try again")]
    Busy(io::Error),
    /// The table belongs to another socket.
    #[error(
        "the table inet {table} belongs to another process, which `nft list table inet {table}` names: stop that \
         process, or use another table ([nftables] table = NAME)"
    )]
    TableOwned {
        /// The name of the table.
        table: String,
    },
    /// Another program deleted the table, or changed it during each attempt of this program.
    #[error("another program changed or deleted the table inet {table}; the next reconciliation repairs it")]
    TableChanged {
        /// The name of the table.
        table: String,
    },
    /// The filter does not support a rule.
    #[error("rule {}: {reason}", .pid.0)]
    Unsupported {
        /// The rule.
        pid: Pid,
        /// The reason.
        reason: Unsupported,
    },
    /// Rules use too many combinations of prefix lengths and wildcards.
    #[error(
        "the rules would have {0} different combinations of prefix lengths and wildcards; at most {max} are allowed, because each \
         costs a lookup per packet; use fewer prefix lengths",
        max = crate::MAX_SHAPES
    )]
    TooManyShapes(usize),
    /// The kernel refused changes for another reason.
    #[error("nftables rejected {} of the changes: {source}", .changes.len())]
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

impl FilterError {
    /// Returns true if the same changes may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused { is_transient, .. } => *is_transient,
            Self::Busy(_) | Self::TableChanged { .. } | Self::Socket(_) => true,
            Self::NotPermitted
            | Self::MissingFeature(_)
            | Self::TableOwned { .. }
            | Self::Unsupported { .. }
            | Self::TooManyShapes(_) => false,
        }
    }
}

/// A feature that a filter does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// nftables has no NAT64.
    #[error("nftables does not translate between IPv4 and IPv6")]
    ProtocolTranslation,
    /// The rule covers too many pairs of ports: each pair needs one set element per direction.
    #[error("a rule of this kind may have {max} pairs of ports, not {flows}; use a wildcard port at one end")]
    TooManyPorts {
        /// Number of pairs of ports, or of blocks of ports.
        flows: usize,
        /// The maximum number of pairs.
        max: usize,
    },
    /// The port ranges of both ends differ in length. Middleboxes refuse such rules before they reach the filter.
    #[error("the port ranges of its two ends have different lengths")]
    PortRanges,
}
