//! Errors in network tables. Each message names the key and the fix.

use hol_base::Duration;
use hol_wire::Address;

use crate::ip::Ip;
use crate::named_path::NamedPath;

/// A network that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants and their fields are")]
pub enum NetworkError {
    #[error(
        "{link}: `jitter` ({jitter}) is longer than `delay` ({delay}); packets cannot arrive before they leave: lower one or raise the other"
    )]
    JitterExceedsDelay { link: String, jitter: Duration, delay: Duration },
    #[error(
        "{link}: `{key}` does nothing without `jitter`, the variation of the delay; add jitter = \"5ms\""
    )]
    JitterMissing { link: String, key: &'static str },
    #[error(
        "{link}: `jitter_correlation` is only for uniform or normal jitter, and the distribution is {distribution}; remove it, or use \"normal\""
    )]
    JitterCorrelation { link: String, distribution: String },
    #[error("{link}: `jitter_distribution`: {problem}")]
    Distribution { link: String, problem: &'static str },
    #[error("{link}: `reorder` needs `reorder_by`, the delay of reordered packets; add reorder_by = \"5ms\"")]
    ReorderByMissing { link: String },
    #[error(
        "{link}: `reorder_by` does nothing without `reorder`, the share of reordered packets; add reorder = \"1%\""
    )]
    ReorderMissing { link: String },
    #[error(
        "{link}: `mtu` is {mtu} octets, but every host of IP{ip} has to accept at least {}, so no link may carry less", .ip.min_mtu()
    )]
    MtuTooSmall { link: String, mtu: u64, ip: Ip },
    #[error("{link}: `queue` has no room, not even for the packet in transmission; it needs at least \"1p\"")]
    QueueHoldsNothing { link: String },
    #[error(
        "{link}: `police`: a `burst` of {burst} octets is less than `mtu`, {mtu}, so the longest packets would never pass, or more than the maximum of 1000000000; choose a value between"
    )]
    Burst { link: String, burst: u64, mtu: u64 },
    #[error(
        "{link}: no other link is on its `channel` {channel:?}; name the same channel on the links that share it, or remove the key"
    )]
    ChannelOfOne { link: String, channel: String },
    #[error("{link}: `discipline`: {problem}")]
    Discipline { link: String, problem: &'static str },
    #[error(
        "`path` = \"{0}\" is only available in experiment files; use the settings that `hol help {0}` shows"
    )]
    PathByName(NamedPath),
    #[error("`rtt` = \"{0}\" is only available in experiment files; use `delay`, which is one-way")]
    RoundTrip(Duration),
    #[error("`{key}` belongs to the short form and `nodes` to the long one; {cure}")]
    MixedForms { key: &'static str, cure: &'static str },
    #[error(
        "`{key}` belongs to the long form; name the nodes, as in nodes = [\"client\", \"router\", \"server\"]"
    )]
    NodesMissing { key: &'static str },
    #[error("`nodes` names {0:?} twice")]
    NodeTwice(String),
    #[error("{place} names {node:?}, which is not in `nodes`")]
    UnknownNode { place: String, node: String },
    #[error("{place} connects {node:?} to itself")]
    SelfLink { place: String, node: String },
    #[error("{place} has {count} nodes; a LAN needs 2 to 250")]
    LanSize { place: String, count: usize },
    #[error("{place} has {nodes} nodes and {addresses} addresses; give each node one, or none")]
    AddressCount { place: String, nodes: usize, addresses: usize },
    #[error("{second} has the address {address} of {first}; give it another one")]
    AddressTwice { address: Address, first: String, second: String },
    #[error(
        "{of} has the address {address}, which is not of IP{ip}; set `ip` in [network] to the version of all addresses"
    )]
    AddressFamily { address: Address, of: String, ip: Ip },
    #[error("no route from {from:?} to {to:?}; add a link")]
    NoWay { from: String, to: String },
    #[error("no route from {0:?} to any other node; add a link")]
    Isolated(String),
    #[error(
        "{nodes} nodes with {addresses} addresses need more than {max} routes; use fewer nodes, or LANs, in which a node has one address"
    )]
    TooManyRoutes { nodes: usize, addresses: usize, max: usize },
    #[error("there are {0} paths, links and LANs; the maximum is 30000")]
    TooMany(usize),
    #[error(
        "`backup` is set on the first of `paths`, where connections begin; put the backup path after another one"
    )]
    BackupFirst,
    #[error("`handover` needs two paths, not {paths}; write paths = [{{}}, {{}}]")]
    HandoverPaths { paths: usize },
    #[error("{link}: `loss`: {problem}")]
    Loss { link: String, problem: &'static str },
    #[error(
        "the event at {at} changes the loss of {link}, and so do the bursts of its `loss`, which are defined in time; remove one of the two"
    )]
    EventInBursts { at: Duration, link: String },
    #[error(
        "the event at {at} has `loss` with bursts in time, which begin with the run; move it to the link"
    )]
    EventOfBursts { at: Duration },
    #[error("the event at {at} changes nothing; give it one of down, rate, loss, delay")]
    EventWithoutChange { at: Duration },
    #[error("the event at {at} is for {target}, which is not in the network; {cure}")]
    EventWithoutTarget { at: Duration, target: String, cure: &'static str },
}
