//! Errors in network tables. Each message names the key and the fix.

use hol_base::Duration;
use hol_wire::Address;

use crate::ip::Ip;
use crate::named_path::NamedPath;

/// Why a network cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the error messages explain the variants and their fields")]
pub enum NetworkError {
    #[error(
        "{link}: `jitter` ({jitter}) is longer than `delay` ({delay}), so packets would arrive before they leave; lower `jitter` or raise \
        `delay`"
    )]
    JitterExceedsDelay { link: String, jitter: Duration, delay: Duration },
    #[error(
        "{link}: `{key}` has no effect without `jitter`, the variation of the delay; add jitter = \"5ms\""
    )]
    JitterMissing { link: String, key: &'static str },
    #[error(
        "{link}: `jitter_correlation` needs uniform or normal jitter, but the distribution is {distribution}; remove the key, or use \
        \"normal\""
    )]
    JitterCorrelation { link: String, distribution: String },
    #[error("{link}: `jitter_distribution`: {problem}")]
    Distribution { link: String, problem: &'static str },
    #[error("{link}: `reorder` needs `reorder_by`, the delay of reordered packets; add reorder_by = \"5ms\"")]
    ReorderByMissing { link: String },
    #[error(
        "{link}: `reorder_by` has no effect without `reorder`, the share of reordered packets; add reorder = \"1%\""
    )]
    ReorderMissing { link: String },
    #[error(
        "{link}: `mtu` is {mtu} octets, but the minimum of IP{ip} is {}; raise `mtu`", .ip.min_mtu()
    )]
    MtuTooSmall { link: String, mtu: u64, ip: Ip },
    #[error("{link}: `queue` has no room for the packet in transmission; use at least \"1p\"")]
    QueueHoldsNothing { link: String },
    #[error(
        "{link}: `police`: `burst` is {burst} octets; use {mtu} (`mtu`) to 1000000000 octets, because a packet longer \
        than the burst would never pass"
    )]
    Burst { link: String, burst: u64, mtu: u64 },
    #[error(
        "{link}: no other link is on its `channel` {channel:?}; name the same channel on the links that share it, or remove the key"
    )]
    UnsharedChannel { link: String, channel: String },
    #[error("{link}: `discipline`: {problem}")]
    Discipline { link: String, problem: &'static str },
    #[error(
        "`path` = \"{0}\" is only available in experiment files; use the settings that `hol help {0}` shows"
    )]
    UnresolvedPathName(NamedPath),
    #[error("`rtt` = \"{0}\" is only available in experiment files; use `delay`, which is one-way")]
    UnresolvedRtt(Duration),
    #[error("`{key}` cannot be used with `nodes`; {cure}")]
    MixedForms { key: &'static str, cure: &'static str },
    #[error("`{key}` needs `nodes`; name the nodes, as in nodes = [\"client\", \"router\", \"server\"]")]
    NodesMissing { key: &'static str },
    #[error("`nodes` contains {0:?} twice; remove one")]
    DuplicateNode(String),
    #[error("{place} names {node:?}, which is not in `nodes`; add it there")]
    UnknownNode { place: String, node: String },
    #[error("{place} connects {node:?} to itself; name two nodes")]
    SelfLink { place: String, node: String },
    #[error("{place} has {count} nodes, but a LAN must have 2 to 250; add or remove some")]
    LanSize { place: String, count: usize },
    #[error("{place} has {nodes} nodes and {addresses} addresses; give each node one, or none")]
    AddressCount { place: String, nodes: usize, addresses: usize },
    #[error("{first} and {second} have the same address {address}; give one of them another")]
    DuplicateAddress { address: Address, first: String, second: String },
    #[error(
        "{of} has the address {address}, which is not an IP{ip} address; give all addresses one IP version and set `ip` in \
        [network] to that version"
    )]
    AddressFamily { address: Address, of: String, ip: Ip },
    #[error("no route from {from:?} to {to:?}; add a link")]
    NoRoute { from: String, to: String },
    #[error("no route from {0:?} to any other node; add a link")]
    IsolatedNode(String),
    #[error(
        "{nodes} nodes with {addresses} addresses need more than {max} routes; use fewer nodes, or LANs, in which a node has one address"
    )]
    TooManyRoutes { nodes: usize, addresses: usize, max: usize },
    #[error("the network has {0} paths, links and LANs; use at most 30000")]
    TooManySegments(usize),
    #[error(
        "`backup` is set on the first of `paths`, where connections begin; put the backup path after another one"
    )]
    FirstPathIsBackup,
    #[error("`handover` needs two paths, not {paths}; write paths = [{{}}, {{}}]")]
    HandoverPaths { paths: usize },
    #[error("{link}: `loss`: {problem}")]
    Loss { link: String, problem: &'static str },
    #[error(
        "the event at {at} changes the loss of {link}, whose `loss` already changes by itself (`good_for`, `bad_for`); remove the event \
        or these keys"
    )]
    LossEventDuringTimedBursts { at: Duration, link: String },
    #[error(
        "the event at {at} sets a `loss` with `good_for` and `bad_for`, which must begin with the run; move this loss to the link"
    )]
    TimedBurstsInEvent { at: Duration },
    #[error("the event at {at} changes nothing; add one of down, rate, loss and delay")]
    EventWithoutChange { at: Duration },
    #[error("the event at {at} names {target}, which the network does not contain; {cure}")]
    EventWithoutTarget { at: Duration, target: String, cure: &'static str },
}
