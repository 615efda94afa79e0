//! Errors of a filter.

use std::io;

use hol_simco::Pid;

/// Why the packet filter was not changed.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The process may not change nftables.
    #[error(
        "changing nftables needs CAP_NET_ADMIN; run as root, or grant the capability \
         (systemd: AmbientCapabilities=CAP_NET_ADMIN, a file: setcap cap_net_admin+ep)"
    )]
    NotPermitted,
    /// The kernel has no nftables, or lacks a part that is needed.
    #[error(
        "this kernel lacks a part of nftables ({0}); load the modules nf_tables, nft_ct, nft_nat and nft_chain_nat"
    )]
    MissingFeature(io::Error),
    /// The kernel has too little memory, or is rearranging a set.
    #[error("nftables refused the changes for now ({0}); try again")]
    Busy(io::Error),
    /// The table belongs to the socket of another process.
    #[error(
        "the table inet {table} belongs to another process, which `nft list table inet {table}` names: stop that \
         process, or use another table ([nftables] table = NAME)"
    )]
    TableOwned {
        /// The name of the table.
        table: String,
    },
    /// Another program deleted the table, or changed it during each of this program's attempts.
    #[error("another program changed or deleted the table inet {table}; the next reconciliation repairs it")]
    TableChanged {
        /// The name of the table.
        table: String,
    },
    /// The packet filter does not support a rule.
    #[error("rule {}: {reason}", .pid.0)]
    Unsupported {
        /// The identifier of the rule.
        pid: Pid,
        /// The feature that is not supported.
        reason: Unsupported,
    },
    /// The rules would have too many shapes (combinations of prefix lengths and wildcards).
    #[error(
        "the rules would have {0} different combinations of prefix lengths and wildcards; at most {max} are allowed, because each \
         costs a lookup per packet; use fewer prefix lengths",
        max = crate::MAX_SHAPES
    )]
    TooManyShapes(usize),
    /// The kernel refused changes for another reason.
    #[error("nftables rejected {} of the changes: {source}", .changes.len())]
    Refused {
        /// The indices of the rejected changes, from 0; at least one.
        changes: Vec<usize>,
        /// Whether the kernel may accept the changes later.
        is_transient: bool,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The netlink socket failed.
    #[error("netlink: {0}")]
    Socket(#[from] io::Error),
}

impl FilterError {
    /// Returns true if the same changes may succeed at a later attempt.
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

/// A feature of rules that a packet filter does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The rule translates between IPv4 and IPv6 (NAT64), which nftables does not support.
    #[error("nftables does not translate between IPv4 and IPv6")]
    ProtocolTranslation,
    /// The rule covers too many pairs of ports; each pair needs one element per direction.
    #[error("a rule of this kind may have {max} pairs of ports, not {flows}; use a wildcard port at one end")]
    TooManyPorts {
        /// Number of pairs of ports (or of blocks of ports) in the rule.
        flows: usize,
        /// The maximum number of pairs of a rule.
        max: usize,
    },
    /// The port ranges of both ends differ in length. Middleboxes refuse such rules before they reach the packet
    /// filter.
    #[error("the port ranges of a rule's two ends have different lengths")]
    PortRanges,
}
