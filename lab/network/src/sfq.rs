//! Stochastic fairness queueing of ns 2.35: one packet of each flow in turn. ns, `queue/sfq.cc`.

use std::collections::{BTreeMap, VecDeque};

use hol_wire::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::transit::PacketInTransit;

/// SFQ of ns between pairs of addresses; `queue` counts waiting packets. Model world only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SfqSpec {
    /// Number of flows among which a full queue is divided. Default 16.
    pub flows: u32,
}

impl Default for SfqSpec {
    fn default() -> Self {
        Self { flows: 16 }
    }
}

impl SfqSpec {
    /// Returns a description of invalid parameters, with a remedy; `None` if they are valid.
    pub(crate) fn problem(self) -> Option<&'static str> {
        (self.flows == 0).then_some("`flows` is 0; the usual value is 16")
    }
}

/// The source and the destination of a flow.
type FlowKey = (Address, Address);

/// The queues of all flows.
#[derive(Debug)]
pub(crate) struct SfqQueue {
    flows: u64,
    /// Maximum number of packets.
    limit: u64,
    /// The packets of each flow that has any.
    queued: BTreeMap<FlowKey, VecDeque<PacketInTransit>>,
    /// The flows that have packets; the first one is served next.
    turns: VecDeque<FlowKey>,
    packets: u64,
    octets: u64,
}

impl SfqQueue {
    /// Creates the queues, which hold `limit` packets in total.
    pub(crate) fn new(spec: SfqSpec, limit: u64) -> Self {
        Self {
            flows: spec.flows.into(),
            limit,
            queued: BTreeMap::new(),
            turns: VecDeque::new(),
            packets: 0,
            octets: 0,
        }
    }

    /// Returns the number of queued packets, and of their octets.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        (self.packets, self.octets)
    }

    /// Appends a packet to the queue of its flow, or drops it: if the flow has half as many packets as the queue has room for; or, if the
    /// room is small, more than its share. `SFQ::enque`.
    pub(crate) fn push(&mut self, transit: PacketInTransit, mut lose: impl FnMut(PacketInTransit)) {
        let key = (transit.packet.source, transit.packet.destination);
        let own = self.queued.get(&key).map_or(0, VecDeque::len) as u64;
        let room = self.limit - self.packets;
        if own >= room / 2 || room < self.flows && own > self.limit / self.flows {
            lose(transit);
            return;
        }
        if own == 0 {
            self.turns.push_back(key);
        }
        self.packets += 1;
        self.octets += transit.length();
        self.queued.entry(key).or_default().push_back(transit);
    }

    /// Returns the packet to transmit now. `SFQ::deque`.
    pub(crate) fn pop(&mut self) -> Option<PacketInTransit> {
        let key = self.turns.pop_front()?;
        let own = self.queued.get_mut(&key)?;
        let transit = own.pop_front()?;
        if own.is_empty() {
            self.queued.remove(&key);
        } else {
            self.turns.push_back(key);
        }
        self.packets -= 1;
        self.octets -= transit.length();
        Some(transit)
    }

    /// Removes all queued packets.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = PacketInTransit> {
        self.turns.clear();
        (self.packets, self.octets) = (0, 0);
        std::mem::take(&mut self.queued).into_values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transit::tests::{source_host, transit_from};

    /// Queues packets of a host; returns how many are dropped.
    fn fill(queue: &mut SfqQueue, host: u8, packets: u32) -> u32 {
        let mut lost = 0;
        for _ in 0..packets {
            queue.push(transit_from(host, 500), |_| lost += 1);
        }
        lost
    }

    /// Dequeues all packets; returns their hosts.
    fn order(queue: &mut SfqQueue) -> Vec<u8> {
        std::iter::from_fn(|| queue.pop()).map(|transit| source_host(&transit)).collect()
    }

    #[test]
    fn flows_send_one_packet_each_in_turn() {
        let mut queue = SfqQueue::new(SfqSpec::default(), 40);
        assert_eq!((fill(&mut queue, 1, 3), fill(&mut queue, 2, 2)), (0, 0));
        assert_eq!(queue.backlog(), (5, 2500));
        assert_eq!(order(&mut queue), [1, 2, 1, 2, 1]);
        assert_eq!(queue.backlog(), (0, 0));
    }

    /// A flow alone fills a third of the queue: it may not have more packets than half of the room.
    #[test]
    fn flow_is_limited_to_half_of_the_room() {
        let mut queue = SfqQueue::new(SfqSpec::default(), 40);
        assert_eq!(fill(&mut queue, 1, 40), 40 - 13);
        assert_eq!(fill(&mut queue, 2, 40), 40 - 9);
    }

    /// With room for fewer packets than flows, a flow keeps at most its share.
    #[test]
    fn small_room_is_divided_by_share() {
        let mut queue = SfqQueue::new(SfqSpec { flows: 16 }, 40);
        for host in 1..=2 {
            fill(&mut queue, host, 40);
        }
        assert_eq!(queue.backlog().0, 22);
        assert_eq!(fill(&mut queue, 3, 40), 40 - 3, "not 6, which is half of the room");
    }

    #[test]
    fn drained_queue_is_empty_and_usable() {
        let mut queue = SfqQueue::new(SfqSpec::default(), 40);
        fill(&mut queue, 1, 5);
        assert_eq!((queue.drain().count(), queue.backlog()), (5, (0, 0)));
        fill(&mut queue, 3, 2);
        assert_eq!(order(&mut queue), [3, 3]);
    }

    #[test]
    fn no_flows_are_refused() {
        assert!(SfqSpec { flows: 0 }.problem().is_some());
        assert_eq!(SfqSpec::default().problem(), None);
    }
}
