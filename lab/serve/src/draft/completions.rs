//! Keys and values of experiment files and ns scripts, for completion in the editor.

use std::collections::BTreeMap;

use hol_network::NetworkSpec;
use hol_workloads::WorkloadKind;
use serde::Serialize;

/// Completions, by the part of the text in which they are allowed.
#[derive(Debug, Serialize)]
pub struct Completions {
    /// Top-level keys, and names of tables.
    pub top: &'static [&'static str],
    /// Keys in `[network]`.
    pub network: Vec<String>,
    /// Keys in `[workload]`, by the kind of workload.
    pub workload: BTreeMap<&'static str, Vec<String>>,
    /// Specifications of common transports.
    pub transports: &'static [&'static str],
    /// Common words of ns scripts.
    pub ns: &'static [&'static str],
}

const TOP_KEYS: [&str; 18] = [
    "title",
    "transports",
    "messages",
    "repetitions",
    "precision",
    "seed",
    "world",
    "records",
    "series",
    "timeline",
    "network",
    "workload",
    "hosts",
    "background",
    "onward",
    "program",
    "sweep",
    "figure",
];

const TRANSPORTS: [&str; 9] = [
    "tcp",
    "sctp",
    "sctp:streams=8",
    "sctp:unordered",
    "tcp:cc=reno",
    "tcp:connections=4",
    "sctp:rto_min=200ms",
    "sctp:stack=linux-2.6.16",
    "udp",
];

const NS_WORDS: [&str; 15] = [
    "set",
    "new",
    "Simulator",
    "node",
    "duplex-link",
    "make-lan",
    "DropTail",
    "RED",
    "queue-limit",
    "rtproto",
    "attach-agent",
    "connect",
    "tb-set-link-loss",
    "tb-set-lan-loss",
    "tb-set-ip-link",
];

/// Keys of `[network]` in addition to link settings.
const NETWORK_KEYS: [&str; 10] =
    ["path", "nodes", "links", "lans", "paths", "up", "down", "events", "trace", "trace_start"];

/// Returns the completions of experiment files and ns scripts.
pub fn completions() -> Completions {
    let settings = toml::Table::try_from(NetworkSpec::default()).expect("a network is a table");
    let network = settings.keys().cloned().chain(NETWORK_KEYS.map(str::to_owned));
    let of = |kind: &WorkloadKind| kind.keys().into_iter().chain(["kind"]).map(str::to_owned).collect();
    let workload = WorkloadKind::all().iter().map(|kind| (kind.workload().name(), of(kind))).collect();
    Completions {
        top: &TOP_KEYS,
        network: network.collect(),
        workload,
        transports: &TRANSPORTS,
        ns: &NS_WORDS,
    }
}
