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
        "{link}: `jitter_correlation` is for jitter that is uniform or normal, and it is {distribution}; leave it out, or take \"normal\""
    )]
    JitterCorrelation { link: String, distribution: String },
    #[error("{link}: `jitter_distribution`: {problem}")]
    Distribution { link: String, problem: &'static str },
    #[error(
        "{link}: `reorder` needs `reorder_by`, the time that a packet is held back; add reorder_by = \"5ms\""
    )]
    ReorderByMissing { link: String },
    #[error(
        "{link}: `reorder_by` does nothing without `reorder`, the share of packets held back; add reorder = \"1%\""
    )]
    ReorderMissing { link: String },
    #[error(
        "{link}: `mtu` is {mtu} octets, but every host of IP{ip} has to take at least {}, and no link here carries less", .ip.least_mtu()
    )]
    MtuTooSmall { link: String, mtu: u64, ip: Ip },
    #[error("{link}: `queue` holds nothing, not even the packet in transmission; it needs at least \"1p\"")]
    QueueHoldsNothing { link: String },
    #[error(
        "{link}: `police`: a `burst` of {burst} octets is less than `mtu`, {mtu}, so the longest packets would never pass, or more than \
         a bucket holds, 1000000000; choose one between"
    )]
    Burst { link: String, burst: u64, mtu: u64 },
    #[error(
        "{link}: nobody else is on its `channel` {channel:?}; name the same one on the links that share it, or leave it out"
    )]
    ChannelOfOne { link: String, channel: String },
    #[error("{link}: `discipline`: {problem}")]
    Discipline { link: String, problem: &'static str },
    #[error(
        "`path` = \"{0}\" has not been replaced by its settings, which happens in experiment files alone; write those that `hol help {0}` shows"
    )]
    PathByName(NamedPath),
    #[error(
        "`rtt` = \"{0}\" has not been halved, which happens in experiment files alone; write `delay`, which is one way"
    )]
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
    #[error("{place} connects {node:?} with itself")]
    SelfLink { place: String, node: String },
    #[error("{place} has {count} nodes; a LAN needs 2 to 250")]
    LanSize { place: String, count: usize },
    #[error("{place} has {nodes} nodes and {addresses} addresses; give each node one, or leave them out")]
    AddressCount { place: String, nodes: usize, addresses: usize },
    #[error("{second} has the address {address} of {first}; give it another one")]
    AddressTwice { address: Address, first: String, second: String },
    #[error(
        "{of} has the address {address}, which is not of IP{ip}; set `ip` in [network] to the version of all addresses"
    )]
    AddressFamily { address: Address, of: String, ip: Ip },
    #[error("no route from {from:?} to {to:?}; add a link")]
    NoWay { from: String, to: String },
    #[error(
        "{nodes} nodes with {addresses} addresses need more than {most} routes; take fewer nodes, or LANs, where a node has one \
         address"
    )]
    TooManyRoutes { nodes: usize, addresses: usize, most: usize },
    #[error("{0} paths, links and LANs are too many; the maximum is 30000")]
    TooMany(usize),
    #[error(
        "`backup` is set on the first of `paths`, where connections begin; put the path that waits after one that does not"
    )]
    BackupFirst,
    #[error("`handover` needs two paths, not {paths}; write paths = [{{}}, {{}}]")]
    HandoverPaths { paths: usize },
    #[error("{link}: `loss`: {problem}")]
    Loss { link: String, problem: &'static str },
    #[error(
        "the event at {at} changes the loss of {link}, and so do the bursts of its `loss`, which last a time; leave one of both out"
    )]
    EventInBursts { at: Duration, link: String },
    #[error("the event at {at} has `loss` in bursts of time, which begin with the run; give it to the link")]
    EventOfBursts { at: Duration },
    #[error("the event at {at} changes nothing; give it one of down, rate, loss, delay")]
    EventWithoutChange { at: Duration },
    #[error("the event at {at} is for {target}, which is not in the network; {cure}")]
    EventWithoutTarget { at: Duration, target: String, cure: &'static str },
}
