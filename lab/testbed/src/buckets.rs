//! The buckets of SFQ and DRR: ns puts several flows into one, hol does not.

use std::collections::BTreeMap;

use crate::flow::Flow;

/// How a queue of ns distributes packets over its buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Buckets {
    /// By the sum of the source and the destination: SFQ with this number of buckets.
    OfPairs(u64),
    /// By the source: DRR with this number of buckets.
    OfSources(u64),
}

impl Buckets {
    /// Returns the bucket of packets between two nodes, which their numbers identify. ns, `SFQ::hash`, `DRR::hash`.
    fn bucket(self, source: u64, destination: u64) -> u64 {
        let mixed = |key: u64| (key as i64) + (key as i64 >> 8) + !(key as i64 >> 4);
        let bucket = match self {
            Self::OfPairs(count) => mixed(source + destination) % ((2 << 19) - 1) % count as i64,
            Self::OfSources(count) => (mixed(source) % ((2 << 23) - 1) + 1) % count as i64,
        };
        bucket.unsigned_abs()
    }

    /// Returns the nodes whose packets hol puts into a queue of their own; packets of both directions never meet in a queue.
    fn own_queue(self, source: u64, destination: u64) -> (u64, Option<u64>) {
        match self {
            Self::OfPairs(_) => (source.min(destination), Some(source.max(destination))),
            Self::OfSources(_) => (source, None),
        }
    }
}

/// Returns the flow whose packets share a bucket with those of another flow, and a description; `None` if each has its own.
/// `nodes` are the names of all nodes, in the order of ns's numbers.
pub(crate) fn shared_bucket<'f>(
    queues: &[Buckets],
    nodes: &[String],
    flows: &'f [Flow],
) -> Option<(&'f Flow, String)> {
    let number = |name: &String| nodes.iter().position(|own| own == name).unwrap_or_default() as u64;
    // Acknowledgments return.
    let directions = |flow: &'f Flow| {
        let [from, to] = [number(&flow.from), number(&flow.to)];
        [(flow, from, to), (flow, to, from)]
    };
    let name = |number: u64| nodes[number as usize].as_str();
    let describe = |(one, other): (u64, Option<u64>)| match other {
        Some(other) => format!("between {} and {}", name(one), name(other)),
        None => format!("from {}", name(one)),
    };
    queues.iter().find_map(|queue| {
        let mut taken = BTreeMap::new();
        flows.iter().flat_map(directions).find_map(|(flow, source, destination)| {
            let own = queue.own_queue(source, destination);
            let other = *taken.entry(queue.bucket(source, destination)).or_insert(own);
            let problem = format!(
                "ns puts the packets {} and those {} into one bucket of SFQ or DRR, hol does not; change buckets_",
                describe(own),
                describe(other)
            );
            (other != own).then_some((flow, problem))
        })
    })
}
