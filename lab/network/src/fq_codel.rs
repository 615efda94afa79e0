//! FQ-CoDel: a CoDel queue per flow, served in turns, new flows first. RFC 8290.

use std::collections::VecDeque;

use hol_base::Time;
use hol_base::{ByteCount, Duration, QueueLimit, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use hol_wire::Address;

use crate::codel::{Codel, CodelSpec, QueuedPacket, pop_front};
use crate::transit::PacketInTransit;

/// FQ-CoDel; defaults of RFC 8290 section 5.2 and of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FairSpec {
    /// Acceptable queueing delay. Default 5 ms.
    pub target: Duration,
    /// Time for which the queueing delay must exceed the target before a drop: about the longest usual RTT. Default
    /// 100 ms.
    pub interval: Duration,
    /// Octets per flow and turn, including link-layer headers. Default 1514.
    pub quantum: ByteCount,
    /// Mark ECN-capable packets instead of dropping. Default yes.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub ecn: bool,
    /// Mark ECN-capable packets queued longer than this, for DCTCP. Default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Duration>,
    /// Number of queues, over which flows are hashed. Default 1024.
    pub flows: u32,
}

impl Default for FairSpec {
    fn default() -> Self {
        let CodelSpec { target, interval, ce_threshold, .. } = CodelSpec::default();
        Self { target, interval, quantum: ByteCount(1514), ecn: true, ce_threshold, flows: 1024 }
    }
}

impl FairSpec {
    /// Maximum number of queues in Linux.
    pub const MAX_FLOWS: u32 = 65_536;

    /// Returns a description of invalid parameters, with a remedy; `None` if they are valid.
    pub(crate) fn problem(self) -> Option<&'static str> {
        match self.quantum.0 {
            0..256 => return Some("`quantum` is below 256B, Linux's minimum; raise it"),
            1_048_577.. => return Some("`quantum` is above 1MiB, Linux's maximum; lower it"),
            _ => {}
        }
        if !(1..=Self::MAX_FLOWS).contains(&self.flows) {
            return Some("`flows` is not between 1 and 65536; the usual value is 1024");
        }
        self.codel().problem()
    }

    const fn codel(self) -> CodelSpec {
        let Self { target, interval, ecn, ce_threshold, .. } = self;
        CodelSpec { target, interval, ecn, ce_threshold }
    }
}

/// The queue of a flow, or of several flows with the same hash.
#[derive(Debug)]
struct Flow {
    queued: VecDeque<QueuedPacket>,
    /// Number of queued octets, including link-layer headers.
    octets: u64,
    /// Number of octets that the flow may still send in this turn.
    credit: i64,
    codel: Codel,
    /// Whether the flow is in the list of new flows or in that of old flows.
    is_listed: bool,
}

/// The queues of all flows.
#[derive(Debug)]
pub(crate) struct FqCodelQueue {
    quantum: i64,
    limit: QueueLimit,
    overhead: u64,
    hash: Seed,
    flows: Vec<Flow>,
    /// Indices of flows whose queues were empty before; they are served before the old flows, for one turn each.
    new_flows: VecDeque<usize>,
    /// Indices of the other flows with queued packets.
    old_flows: VecDeque<usize>,
    packets: u64,
    /// Number of octets in all queues, including link-layer headers.
    octets: u64,
}

impl FqCodelQueue {
    /// Maximum number of packets that are dropped together from the longest queue when there is no room, as in
    /// Linux. Several are dropped, because finding the longest queue takes time.
    const MAX_DROPPED_AT_ONCE: u32 = 64;

    /// Creates the queues. A link-layer header has `overhead` octets, and the longest packet has
    /// `longest_packet` octets.
    pub(crate) fn new(
        spec: FairSpec,
        limit: QueueLimit,
        overhead: u64,
        longest_packet: u64,
        hash: Seed,
    ) -> Self {
        let flow = |_| Flow {
            queued: VecDeque::new(),
            octets: 0,
            credit: 0,
            codel: Codel::new(spec.codel(), longest_packet),
            is_listed: false,
        };
        Self {
            quantum: spec.quantum.0 as i64,
            limit,
            overhead,
            hash,
            flows: (0..spec.flows).map(flow).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            packets: 0,
            octets: 0,
        }
    }

    /// Returns the number of packets marked so far.
    pub(crate) fn marked_packets(&self) -> u64 {
        self.flows.iter().map(|flow| flow.codel.marked_packets()).sum()
    }

    /// Returns the number of queued packets, and the number of their octets without link-layer headers.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        (self.packets, self.octets - self.packets * self.overhead)
    }

    /// Appends a packet to the queue of its flow. If there is no room, drops packets from the longest queue. RFC 8290
    /// section 4.1.
    pub(crate) fn push(
        &mut self,
        now: Time,
        transit: PacketInTransit,
        in_service: u64,
        lose: impl FnMut(PacketInTransit),
    ) {
        if self.packets == 0 && in_service == 0 {
            // The link is idle, so it has polled all flows and found them empty. Linux dequeues until the
            // qdisc returns no packet.
            let nothing = self.pop(now, |_| unreachable!("the queue is empty"));
            debug_assert!(nothing.is_none(), "an empty queue has a packet");
        }
        let place = self.queue_index(&transit);
        let length = transit.length() + self.overhead;
        let flow = &mut self.flows[place];
        flow.queued.push_back(QueuedPacket { queued_at: now, transit });
        flow.octets += length;
        if !flow.is_listed {
            flow.is_listed = true;
            flow.credit = self.quantum;
            self.new_flows.push_back(place);
        }
        self.packets += 1;
        self.octets += length;
        if self.exceeds_limit(in_service) {
            self.make_room(lose);
        }
    }

    /// Returns the packet to transmit now; passes packets that are dropped before it to `lose`. RFC 8290 section
    /// 4.2.
    pub(crate) fn pop(
        &mut self,
        now: Time,
        mut lose: impl FnMut(PacketInTransit),
    ) -> Option<PacketInTransit> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let place = *if is_new { self.new_flows.front() } else { self.old_flows.front() }?;
            if self.flows[place].credit <= 0 {
                self.flows[place].credit += self.quantum;
                self.remove_head(is_new);
                self.old_flows.push_back(place);
                continue;
            }
            if let Some(transit) = self.next_packet(place, now, &mut lose) {
                self.flows[place].credit -= (transit.length() + self.overhead) as i64;
                return Some(transit);
            }
            self.remove_head(is_new);
            // A new flow that became empty moves behind the old ones; otherwise its next packet would make it
            // new again.
            if is_new && !self.old_flows.is_empty() {
                self.old_flows.push_back(place);
            } else {
                self.flows[place].is_listed = false;
            }
        }
    }

    /// Removes and returns all queued packets.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = PacketInTransit> {
        self.new_flows.clear();
        self.old_flows.clear();
        (self.packets, self.octets) = (0, 0);
        self.flows.iter_mut().flat_map(|flow| {
            flow.is_listed = false;
            flow.octets = 0;
            std::mem::take(&mut flow.queued).into_iter().map(|waiting| waiting.transit)
        })
    }

    fn next_packet(
        &mut self,
        place: usize,
        now: Time,
        mut lose: impl FnMut(PacketInTransit),
    ) -> Option<PacketInTransit> {
        let Self { flows, packets, octets, overhead, .. } = self;
        let Flow { queued: waiting, octets: own, codel, .. } = &mut flows[place];
        let take = || {
            let (first, _) = pop_front(waiting, own, *overhead)?;
            *packets -= 1;
            *octets -= first.transit.length() + *overhead;
            // As in Linux, the minimum backlog is that of all queues together.
            Some((first, *octets))
        };
        codel.next(now, take, &mut lose)
    }

    fn remove_head(&mut self, is_new: bool) {
        if is_new {
            self.new_flows.pop_front()
        } else {
            self.old_flows.pop_front()
        };
    }

    /// Drops half of the longest queue, from its head. It drops so much, because finding the longest queue takes
    /// time. RFC 8290 section 4.1.
    fn make_room(&mut self, mut lose: impl FnMut(PacketInTransit)) {
        let longest = (0..self.flows.len()).rev().max_by_key(|place| self.flows[*place].octets);
        let flow = &mut self.flows[longest.expect("there is a flow")];
        let (half, mut dropped, mut gone) = (flow.octets / 2, 0, 0);
        while let Some(QueuedPacket { transit, .. }) = flow.queued.pop_front() {
            let length = transit.length() + self.overhead;
            (dropped, gone) = (dropped + 1, gone + length);
            lose(transit);
            if dropped == Self::MAX_DROPPED_AT_ONCE || gone >= half {
                break;
            }
        }
        flow.octets -= gone;
        flow.codel.count_dropped(dropped);
        self.packets -= u64::from(dropped);
        self.octets -= gone;
    }

    fn exceeds_limit(&self, in_service: u64) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => self.packets + u64::from(in_service > 0) > limit,
            QueueLimit::Bytes(limit) => self.backlog().1 + in_service > limit,
        }
    }

    /// Returns the index of the queue to which the packet's flow belongs.
    fn queue_index(&self, transit: &PacketInTransit) -> usize {
        let packet = &transit.packet;
        let [source, destination] = [packet.source, packet.destination].map(|address| match address {
            Address::V4(address) => u64::from(address.to_bits()),
            Address::V6(address) => (address.to_bits() >> 64) as u64 ^ address.to_bits() as u64,
        });
        let (from, to) = packet.ports();
        let ports = u64::from(from) << 24 | u64::from(to) << 8 | u64::from(packet.transport.protocol());
        let hash = self.hash.derive_for_index(source.rotate_left(32) ^ destination).derive_for_index(ports);
        (hash.0 % self.flows.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use hol_wire::{Packet, udp};

    use super::*;
    use crate::InterfaceId;

    fn transit(port: u16, number: u32, length: usize) -> PacketInTransit {
        let payload = vec![0; length - 28].into();
        let datagram =
            udp::Datagram { source_port: port, destination_port: 2, payload, stamp: Default::default() };
        let packet = Packet::new(hol_wire::ipv4(10, 0, 1, 1), hol_wire::ipv4(10, 0, 1, 2), datagram);
        PacketInTransit::new(InterfaceId(0), InterfaceId(1), number, packet)
    }

    fn queue(limit: u64) -> FqCodelQueue {
        FqCodelQueue::new(FairSpec::default(), QueueLimit::Packets(limit), 14, 1514, Seed(1))
    }

    /// Dequeues all packets at once; returns their ports in order.
    fn order(queue: &mut FqCodelQueue) -> Vec<u16> {
        let pop = || queue.pop(Time::ZERO, |_| panic!("no packet may be dropped"));
        std::iter::from_fn(pop).map(|transit| transit.packet.ports().0).collect()
    }

    fn fill(queue: &mut FqCodelQueue, port: u16, packets: u32, length: usize) -> Vec<u16> {
        let mut lost = Vec::new();
        for number in 0..packets {
            let transit = transit(port, number, length);
            queue.push(Time::ZERO, transit, 0, |transit| lost.push(transit.packet.ports().0));
        }
        lost
    }

    #[test]
    fn rfc8290_4_2_a_new_flow_goes_before_the_old_ones_once() {
        let mut queue = queue(1000);
        fill(&mut queue, 1, 10, 1500);
        assert!(queue.pop(Time::ZERO, |_| ()).is_some_and(|first| first.packet.ports().0 == 1));
        fill(&mut queue, 2, 3, 1500);
        assert_eq!(order(&mut queue)[..7], [2, 1, 2, 1, 2, 1, 1]);
    }

    /// RFC 8290, 4.2: a queue that is empty when polled leaves the list, so its next packet makes it new. The
    /// link polls when it is free.
    #[test]
    fn rfc8290_4_2_flow_that_was_polled_while_empty_is_new_again() {
        for (in_service, due) in [(0, [2, 1]), (1500, [1, 2])] {
            let mut queue = queue(1000);
            fill(&mut queue, 1, 1, 1500);
            fill(&mut queue, 2, 1, 1500);
            for port in [1, 2] {
                assert_eq!(queue.pop(Time::ZERO, |_| ()).map(|first| first.packet.ports().0), Some(port));
            }
            // Both flows are still listed, because the link has not polled them.
            queue.push(Time::ZERO, transit(3, 0, 1500), in_service, |_| ());
            for port in [2, 1] {
                queue.push(Time::ZERO, transit(port, 0, 1500), 1500, |_| ());
            }
            assert_eq!(order(&mut queue)[1..], due, "{in_service}");
        }
    }

    #[test]
    fn rfc8290_4_2_flows_share_the_link_by_octets_and_not_by_packets() {
        let mut queue = queue(10_000);
        fill(&mut queue, 1, 1000, 1500);
        fill(&mut queue, 2, 10_000, 743);
        let first = &order(&mut queue)[..900];
        let of_first = first.iter().filter(|port| **port == 1).count();
        assert!(
            (299..=301).contains(&of_first),
            "{of_first} of 900, in packets of 757 octets, sharing with packets of 1514"
        );
    }

    #[test]
    fn rfc8290_4_1_overflow_drops_half_of_the_longest_queue() {
        let mut queue = queue(100);
        assert!(fill(&mut queue, 1, 100, 1500).is_empty());
        let lost = fill(&mut queue, 2, 30, 100);
        assert_eq!(lost, [1; 50], "half of the longest queue, once");
        assert_eq!(queue.backlog(), (80, 50 * 1500 + 30 * 100));
    }

    #[test]
    fn flows_are_distinguished_by_addresses_ports_and_protocol() {
        let queue = queue(10);
        let places: std::collections::BTreeSet<usize> =
            (0..100).map(|port| queue.queue_index(&transit(port, 0, 100))).collect();
        assert!(places.len() > 85, "100 flows in 1024 queues meet seldom: {}", places.len());
        assert_eq!(queue.queue_index(&transit(7, 0, 100)), queue.queue_index(&transit(7, 1, 1500)));
    }

    #[test]
    fn drained_queue_is_empty_and_usable() {
        let mut queue = queue(100);
        fill(&mut queue, 1, 5, 1500);
        fill(&mut queue, 2, 5, 1500);
        assert_eq!((queue.drain().count(), queue.backlog()), (10, (0, 0)));
        fill(&mut queue, 3, 2, 1500);
        assert_eq!(order(&mut queue), [3, 3]);
    }

    #[test]
    fn invalid_parameters_are_described() {
        let wrong = [
            FairSpec { quantum: ByteCount(255), ..FairSpec::default() },
            FairSpec { quantum: ByteCount(2 << 20), ..FairSpec::default() },
            FairSpec { flows: 0, ..FairSpec::default() },
            FairSpec { target: Duration::ZERO, ..FairSpec::default() },
        ];
        assert!(wrong.into_iter().all(|spec| spec.problem().is_some()));
        assert_eq!(FairSpec::default().problem(), None);
    }
}
