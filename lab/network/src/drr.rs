//! Deficit round robin as in ns 2.35: each source in turn sends its quantum of octets. ns, `queue/drr.cc`.

use std::collections::{BTreeMap, VecDeque};

use hol_base::ByteCount;
use hol_wire::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::transit::PacketInTransit;

/// Deficit round robin of ns between source addresses; `queue` counts waiting octets. Model world only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DrrSpec {
    /// Octets per source and turn. Default 250 B.
    pub quantum: ByteCount,
}

impl Default for DrrSpec {
    fn default() -> Self {
        Self { quantum: ByteCount(250) }
    }
}

impl DrrSpec {
    /// Returns a description of invalid parameters, with a remedy; `None` if they are valid.
    pub(crate) fn problem(self) -> Option<&'static str> {
        match self.quantum.0 {
            // With less, a packet of 1500 octets waits for more than 37 rounds over all sources.
            40..=1_048_576 => None,
            _ => Some("`quantum` is not between 40B and 1MiB; the usual value is 250B"),
        }
    }
}

/// The packets of a source.
#[derive(Debug, Default)]
struct Flow {
    queued: VecDeque<PacketInTransit>,
    octets: u64,
    /// Octets that the source may still send.
    deficit: u64,
    /// Whether the source has received its quantum for this turn.
    has_turn: bool,
}

/// The queues of all sources.
#[derive(Debug)]
pub(crate) struct DrrQueue {
    quantum: u64,
    /// Maximum number of octets.
    limit: u64,
    flows: BTreeMap<Address, Flow>,
    /// The sources that have packets; the first one is served.
    turns: VecDeque<Address>,
    packets: u64,
    octets: u64,
}

impl DrrQueue {
    /// Creates the queues, which hold `limit` octets in total.
    pub(crate) fn new(spec: DrrSpec, limit: u64) -> Self {
        Self {
            quantum: spec.quantum.0,
            limit,
            flows: BTreeMap::new(),
            turns: VecDeque::new(),
            packets: 0,
            octets: 0,
        }
    }

    /// Returns the number of queued packets, and of their octets.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        (self.packets, self.octets)
    }

    /// Appends a packet to the queue of its source; if there are too many octets, drops the oldest packets of the
    /// longest queue. `DRR::enque`.
    pub(crate) fn push(&mut self, transit: PacketInTransit, mut lose: impl FnMut(PacketInTransit)) {
        let source = transit.packet.source;
        let length = transit.length();
        let flow = self.flows.entry(source).or_default();
        flow.queued.push_back(transit);
        flow.octets += length;
        if flow.queued.len() == 1 {
            // The turn remains if the last packet of this source was dropped during it, as in ns.
            flow.deficit = 0;
            self.turns.push_back(source);
        }
        self.packets += 1;
        self.octets += length;
        while self.octets > self.limit {
            // The first of several longest queues, from the one that is served.
            let longest = self.turns.iter().rev().max_by_key(|source| self.flows[*source].octets);
            let longest = *longest.expect("some source has packets");
            if let Some(dropped) = self.take(longest) {
                lose(dropped);
            }
        }
    }

    /// Returns the packet to transmit now. `DRR::deque`.
    pub(crate) fn pop(&mut self) -> Option<PacketInTransit> {
        loop {
            let source = *self.turns.front()?;
            let flow = self.flows.get_mut(&source)?;
            if !flow.has_turn {
                flow.deficit += self.quantum;
                flow.has_turn = true;
            }
            let length = flow.queued.front()?.length();
            if flow.deficit < length {
                flow.has_turn = false;
                self.turns.rotate_left(1);
                continue;
            }
            flow.deficit -= length;
            if flow.queued.len() == 1 {
                flow.has_turn = false;
            }
            return self.take(source);
        }
    }

    /// Removes all queued packets.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = PacketInTransit> {
        self.turns.clear();
        (self.packets, self.octets) = (0, 0);
        std::mem::take(&mut self.flows).into_values().flat_map(|flow| flow.queued)
    }

    /// Removes the first packet of a source, and the source from the turns if it was the last one.
    fn take(&mut self, source: Address) -> Option<PacketInTransit> {
        let flow = self.flows.get_mut(&source)?;
        let transit = flow.queued.pop_front()?;
        flow.octets -= transit.length();
        if flow.queued.is_empty() {
            self.turns.retain(|other| *other != source);
        }
        self.packets -= 1;
        self.octets -= transit.length();
        Some(transit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transit::tests::{source_host, transit_from};

    fn queue(quantum: u64, limit: u64) -> DrrQueue {
        DrrQueue::new(DrrSpec { quantum: ByteCount(quantum) }, limit)
    }

    /// Queues packets of a host; returns the hosts of dropped packets.
    fn fill(queue: &mut DrrQueue, host: u8, packets: u32, length: usize) -> Vec<u8> {
        let mut lost = Vec::new();
        for _ in 0..packets {
            queue.push(transit_from(host, length), |transit| lost.push(source_host(&transit)));
        }
        lost
    }

    /// Dequeues all packets; returns their hosts.
    fn order(queue: &mut DrrQueue) -> Vec<u8> {
        std::iter::from_fn(|| queue.pop()).map(|transit| source_host(&transit)).collect()
    }

    #[test]
    fn sources_share_the_link_by_octets() {
        let mut queue = queue(500, 1_000_000);
        fill(&mut queue, 1, 100, 1000);
        fill(&mut queue, 2, 400, 250);
        let first = &order(&mut queue)[..250];
        let of_first = first.iter().filter(|host| **host == 1).count();
        assert!((49..=51).contains(&of_first), "{of_first} of 250");
    }

    #[test]
    fn quantum_is_sent_in_one_turn() {
        let mut queue = queue(500, 10_000);
        fill(&mut queue, 1, 4, 250);
        fill(&mut queue, 2, 4, 250);
        assert_eq!(order(&mut queue), [1, 1, 2, 2, 1, 1, 2, 2]);
    }

    #[test]
    fn full_queue_drops_from_the_longest() {
        let mut queue = queue(250, 1000);
        assert!(fill(&mut queue, 1, 4, 250).is_empty());
        assert_eq!(fill(&mut queue, 2, 2, 250), [1, 1]);
        assert_eq!(fill(&mut queue, 2, 1, 250), [2]);
        assert_eq!(fill(&mut queue, 3, 1, 250), [1], "of equally long ones that which is served");
        assert_eq!(queue.backlog(), (4, 1000));
        assert_eq!(order(&mut queue), [1, 2, 3, 2]);
    }

    #[test]
    fn packet_longer_than_the_queue_is_dropped() {
        let mut queue = queue(250, 1000);
        assert_eq!(fill(&mut queue, 1, 1, 1500), [1]);
        assert_eq!((queue.backlog(), order(&mut queue)), ((0, 0), vec![]));
    }

    #[test]
    fn drained_queue_is_empty_and_usable() {
        let mut queue = queue(250, 10_000);
        fill(&mut queue, 1, 5, 250);
        assert_eq!((queue.drain().count(), queue.backlog()), (5, (0, 0)));
        fill(&mut queue, 3, 2, 250);
        assert_eq!(order(&mut queue), [3, 3]);
    }

    #[test]
    fn invalid_quanta_are_refused() {
        assert!(
            [0, 2 << 20]
                .into_iter()
                .all(|quantum| DrrSpec { quantum: ByteCount(quantum) }.problem().is_some())
        );
        assert_eq!(DrrSpec::default().problem(), None);
    }
}
