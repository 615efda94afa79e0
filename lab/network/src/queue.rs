//! The queue of a link.

use std::collections::VecDeque;

use hol_base::{QueueLimit, Seed, Time};

use crate::codel::CodelQueue;
use crate::discipline::Discipline;
use crate::dualpi2::DualPi2Queue;
use crate::fq_codel::FqCodelQueue;
use crate::pie::PieQueue;
use crate::spec::Settings;
use crate::tap::TapEvent;
use crate::transit::PacketInTransit;

/// Packets queued for the transmitter, under the link's discipline.
///
/// The limit includes the packet in transmission: a limit of 6 packets means one in transmission and five
/// queued, as in ns-2's DropTail and dummynet.
#[derive(Debug)]
pub(crate) struct Queue {
    limit: QueueLimit,
    /// Number of queued packets, which is read more often than it changes.
    packets: u64,
    order: Order,
}

/// The order in which a queue releases packets.
#[derive(Debug)]
enum Order {
    /// Drop-tail or RED: first in, first out.
    Fifo(Fifo),
    /// CoDel: first in, first out, with drops after a long delay.
    Codel(Box<CodelQueue>),
    /// FQ-CoDel: one queue per flow, served in turn.
    Fair(Box<FqCodelQueue>),
    /// PIE: first in, first out, with early drops on arrival.
    Pie(Box<PieQueue>),
    /// DualPI2: a low-latency queue beside a classic one.
    DualPi2(Box<DualPi2Queue>),
}

/// Packets in the order of their arrival.
#[derive(Debug, Default)]
struct Fifo {
    queued: VecDeque<PacketInTransit>,
    /// Octets of the queued IP packets.
    octets: u64,
}

impl Queue {
    /// Creates a queue; draws derive from `seed`.
    pub(crate) fn new(settings: &Settings, seed: Seed) -> Self {
        let (limit, overhead) = (settings.queue, settings.overhead.0);
        let longest_packet = settings.mtu.0 + overhead;
        let order = match settings.discipline {
            Discipline::DropTail | Discipline::Red(_) => Order::Fifo(Fifo::default()),
            Discipline::Codel(spec) => {
                Order::Codel(Box::new(CodelQueue::new(spec, overhead, longest_packet)))
            }
            Discipline::FairCodel(spec) => {
                let hash = seed.derive("flows");
                Order::Fair(Box::new(FqCodelQueue::new(spec, limit, overhead, longest_packet, hash)))
            }
            Discipline::Pie(spec) => {
                Order::Pie(Box::new(PieQueue::new(spec, overhead, longest_packet, seed.derive("pie"))))
            }
            Discipline::DualPi2(spec) => Order::DualPi2(Box::new(DualPi2Queue::new(
                spec,
                overhead,
                longest_packet,
                seed.derive("dualpi2"),
            ))),
        };
        Self { limit, packets: 0, order }
    }

    /// Returns whether a packet that need not wait may bypass the queue without a change of the discipline's
    /// state.
    #[inline]
    pub(crate) fn may_be_bypassed(&self) -> bool {
        matches!(self.order, Order::Fifo(_))
    }

    /// Returns the number of queued packets, and of their octets without link-layer headers.
    #[inline]
    pub(crate) fn backlog(&self) -> (u64, u64) {
        (self.packets, self.octets())
    }

    fn octets(&self) -> u64 {
        match &self.order {
            Order::Fifo(fifo) => fifo.octets,
            Order::Codel(queue) => queue.backlog().1,
            Order::Fair(queue) => queue.backlog().1,
            Order::Pie(queue) => queue.backlog().1,
            Order::DualPi2(queue) => queue.backlog().1,
        }
    }

    /// Returns the number of packets marked by the discipline.
    pub(crate) fn marked_packets(&self) -> u64 {
        match &self.order {
            Order::Fifo(_) => 0,
            Order::Codel(queue) => queue.marked_packets(),
            Order::Fair(queue) => queue.marked_packets(),
            Order::Pie(queue) => queue.marked_packets(),
            Order::DualPi2(queue) => queue.marked_packets(),
        }
    }

    #[inline]
    /// Returns whether no packet is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Queues a packet while `in_service` octets are in transmission, and calls `lose` with each packet that is
    /// dropped.
    #[inline]
    pub(crate) fn push(
        &mut self,
        now: Time,
        transit: PacketInTransit,
        in_service: u64,
        mut lose: impl FnMut(PacketInTransit, TapEvent),
    ) {
        let has_room = self.has_room(transit.length(), in_service);
        match &mut self.order {
            Order::Fair(queue) => {
                queue.push(now, transit, in_service, |transit| lose(transit, TapEvent::QueueFull));
                self.packets = queue.backlog().0;
            }
            Order::Pie(queue) => {
                queue.push(now, transit, has_room, lose);
                self.packets = queue.backlog().0;
            }
            Order::Fifo(_) | Order::Codel(_) | Order::DualPi2(_) if !has_room => {
                lose(transit, TapEvent::QueueFull);
            }
            Order::Fifo(fifo) => {
                self.packets += 1;
                fifo.push(transit);
            }
            Order::Codel(queue) => {
                self.packets += 1;
                queue.push(now, transit);
            }
            Order::DualPi2(queue) => {
                let is_idle = self.packets == 0 && in_service == 0;
                self.packets += 1;
                queue.push(now, transit, is_idle);
            }
        }
    }

    /// Returns the packet to transmit now, and calls `lose` with the packets that the discipline drops before that one.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time, lose: impl FnMut(PacketInTransit)) -> Option<PacketInTransit> {
        match &mut self.order {
            Order::Fifo(fifo) => {
                let transit = fifo.pop()?;
                self.packets -= 1;
                Some(transit)
            }
            Order::Codel(queue) => {
                let transit = queue.pop(now, lose);
                self.packets = queue.backlog().0;
                transit
            }
            Order::Fair(queue) => {
                let transit = queue.pop(now, lose);
                self.packets = queue.backlog().0;
                transit
            }
            Order::DualPi2(queue) => {
                let transit = queue.pop(now, lose);
                self.packets = queue.backlog().0;
                transit
            }
            Order::Pie(queue) => {
                let transit = queue.pop(now)?;
                self.packets -= 1;
                Some(transit)
            }
        }
    }

    /// Removes and returns all queued packets.
    pub(crate) fn drain(&mut self) -> Vec<PacketInTransit> {
        self.packets = 0;
        match &mut self.order {
            Order::Fifo(fifo) => std::iter::from_fn(|| fifo.pop()).collect(),
            Order::Codel(queue) => queue.drain().collect(),
            Order::Fair(queue) => queue.drain().collect(),
            Order::Pie(queue) => queue.drain().collect(),
            Order::DualPi2(queue) => queue.drain().collect(),
        }
    }

    /// Returns whether there is room for `length` octets in addition to those queued and the `in_service`
    /// octets in transmission.
    fn has_room(&self, length: u64, in_service: u64) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => self.packets + u64::from(in_service > 0) < limit,
            QueueLimit::Bytes(limit) => self.octets() + in_service + length <= limit,
        }
    }
}

impl Fifo {
    fn push(&mut self, transit: PacketInTransit) {
        self.octets += transit.length();
        self.queued.push_back(transit);
    }

    fn pop(&mut self) -> Option<PacketInTransit> {
        let transit = self.queued.pop_front()?;
        self.octets -= transit.length();
        Some(transit)
    }
}
