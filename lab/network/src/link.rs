//! One link direction: a queue, a transmitter, and the effects on packets.

use std::collections::VecDeque;

use hol_base::{Duration, Ratio, Seed, Time};
use hol_wire::Packet;

use crate::delay_line::DelayLine;
use crate::event_rate::EventRate;
use crate::link_change::LinkChange;
use crate::loss::Loss;
use crate::observer::TapReporter;
use crate::policer::Policer;
use crate::propagation::Propagation;
use crate::queue::Queue;
use crate::random_effect::RandomEffect;
use crate::red::Red;
use crate::spec::Settings;
use crate::tap::TapEvent;
use crate::transit::PacketInTransit;
use crate::transmitter::Transmitter;

/// A packet on the link: still in transmission, or already transmitted and propagating.
#[derive(Debug)]
struct InFlight {
    arrives: Time,
    /// What happens to the packet when it reaches the end of the link, at the time `arrives`.
    at_end: AtEnd,
    transit: PacketInTransit,
}

/// A packet, with its duplicates, whose transmission was interrupted because the rate became 0.
#[derive(Debug)]
struct Interrupted {
    /// The time at which the transmission would have ended without the interruption.
    due: Time,
    /// The packet and its duplicates, with the times at which they would have arrived without the interruption.
    packets: VecDeque<InFlight>,
}

/// What happens to a packet that has crossed the link.
#[derive(Debug, Clone, Copy, PartialEq)]
enum AtEnd {
    /// The policer drops the packet or lets it pass; in the second case the packet arrives at once.
    Arrives,
    /// The policer drops the packet or lets it pass; in the second case the packet arrives `reorder_by` later.
    HeldBack,
    /// The packet arrives; the policer has already let it pass.
    ArrivesLate,
}

/// A packet that arrives at most this long after the end of a transmission is received before the next transmission
/// begins. In Linux both timers expire at the same time then, because netem rounds the time to send each packet down to
/// a nanosecond.
const ROUNDING: Duration = Duration::from_nanos(4);

/// One direction of a link, or a LAN.
///
/// A packet waits in the queue and occupies the transmitter; then the link applies its effects, such as loss, so a
/// lost packet uses the link, too. The k-th transmitted packet gets the k-th draw of each effect, independent of the
/// other effects. The policer is at the end of the link. Only reordering comes after it, as in the kernel world,
/// where packets that overtake would pass a policer behind netem without being counted.
#[derive(Debug)]
pub(crate) struct Link {
    mtu: u64,
    is_up: bool,
    queue: Queue,
    red: Option<Red>,
    transmitter: Transmitter,
    /// The time until which other links transmit on the channel that this link shares with them.
    blocked_until: Time,
    /// Octets of the packet in transmission, or of the last one.
    in_service: u64,
    /// When a packet last reached the queue or the transmitter.
    last_arrival: Time,
    /// The number of the packet in transmission, or of the last one; `None` before the first one.
    number_in_transmission: Option<u32>,
    loss: Loss,
    duplication: RandomEffect,
    corruption: RandomEffect,
    reordering: RandomEffect,
    reorder_by: Duration,
    /// The delay before the queue, if it changes during the run.
    approach: Option<Box<DelayLine>>,
    /// The delay after the queue.
    propagation: Propagation,
    /// Packets in flight, in the order of arrival.
    in_flight: VecDeque<InFlight>,
    /// The packet in transmission when the rate became 0, and its copies.
    interrupted: Option<Interrupted>,
    police: Option<Policer>,
}

impl Link {
    /// Creates a link whose effects draw from their own streams, derived from `seed` by name. With `delay_changes`
    /// the delay comes before the queue: see [`DelayLine`].
    pub(crate) fn new(settings: &Settings, seed: Seed, delay_changes: bool) -> Self {
        let chance = |ratio: Ratio, name| RandomEffect::new(ratio, seed.derive(name));
        let propagation = Propagation::new(settings, seed.derive("jitter"));
        let (approach, propagation) = match delay_changes {
            true => (Some(Box::new(DelayLine::new(propagation))), Propagation::none()),
            false => (None, propagation),
        };
        Self {
            mtu: settings.mtu.0,
            is_up: true,
            queue: Queue::new(settings, seed),
            red: Red::new(settings.discipline, seed.derive("red")),
            transmitter: Transmitter::new(settings.rate, settings.overhead.0),
            blocked_until: Time::ZERO,
            in_service: 0,
            last_arrival: Time::ZERO,
            number_in_transmission: None,
            loss: Loss::new(&settings.loss, seed.derive("loss")),
            duplication: chance(settings.duplicate, "duplicate"),
            corruption: chance(settings.corrupt, "corrupt"),
            reordering: chance(settings.reorder, "reorder"),
            reorder_by: settings.reorder_by,
            approach,
            propagation,
            in_flight: VecDeque::new(),
            interrupted: None,
            police: Policer::new(settings.police),
        }
    }

    /// Returns when the link acts next, because a packet arrives or a transmission starts; [`Time::MAX`] if
    /// neither.
    #[inline]
    pub(crate) fn next_action(&self) -> Time {
        let arrival = self.in_flight.front().map_or(Time::MAX, |flight| flight.arrives);
        let arrival = arrival.min(self.next_approach());
        let departure = self.free_at() + ROUNDING;
        if self.queue.is_empty() { arrival } else { arrival.min(departure) }
    }

    /// Returns when the next packet reaches the queue after its delay; [`Time::MAX`] if none is under way.
    #[inline]
    fn next_approach(&self) -> Time {
        self.approach.as_ref().map_or(Time::MAX, |approach| approach.next_at())
    }

    /// Returns when the link may transmit the next packet.
    #[inline]
    pub(crate) fn free_at(&self) -> Time {
        self.transmitter.free_at().max(self.blocked_until)
    }

    /// Returns the number of packets queued or in transmission, and the number of their octets, counted as
    /// the limit of the queue counts them.
    pub(crate) fn backlog(&self, now: Time) -> (u64, u64) {
        let (packets, octets) = self.queue.backlog();
        match self.transmitter.is_sending(now) {
            true => (packets + 1, octets + self.in_service),
            false => (packets, octets),
        }
    }

    /// Returns when the packet in transmission will have left, if there is one and the rate is not 0.
    pub(crate) fn sends_until(&self, now: Time) -> Option<Time> {
        Some(self.transmitter.free_at()).filter(|until| *until > now && !self.transmitter.is_stopped())
    }

    /// Returns the time until which this or another link of its channel transmits; `None` while the rate is
    /// 0.
    pub(crate) fn occupied_until(&self) -> Option<Time> {
        (!self.transmitter.is_stopped()).then(|| self.free_at())
    }

    /// Returns the time until which other links transmit on the channel that this link shares with them.
    pub(crate) fn blocked_until(&self) -> Time {
        self.blocked_until
    }

    /// Blocks the link while other links use its channel.
    pub(crate) fn block_until(&mut self, until: Time) {
        self.blocked_until = until;
    }

    /// Returns the number of packets that the link's queue has marked.
    pub(crate) fn marked_packets(&self) -> u64 {
        self.queue.marked_packets() + self.red.as_ref().map_or(0, Red::marked_packets)
    }

    /// Returns whether a packet is queued that may be transmitted now.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        !self.queue.is_empty() && self.free_at() <= now
    }

    /// Accepts a packet from a node; all transmissions due before must have been started.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, transit: PacketInTransit, observer: &mut TapReporter<'_>) {
        if !self.is_up {
            observer.report_loss(now, &transit, TapEvent::LinkDown);
        } else if transit.length() > self.mtu {
            observer.report_loss(now, &transit, TapEvent::TooLong);
        } else if let Some(approach) = &mut self.approach {
            approach.push(now, transit);
        } else {
            self.enqueue(now, transit, observer);
        }
    }

    /// Transmits a packet, or puts it into the queue; all transmissions due before must have been started.
    #[inline]
    fn enqueue(&mut self, now: Time, mut transit: PacketInTransit, observer: &mut TapReporter<'_>) {
        self.last_arrival = now;
        if self.is_dropped_early(now, &mut transit.packet) {
            observer.report_loss(now, &transit, TapEvent::DroppedEarly);
        } else if self.free_at() > now || !self.queue.is_empty() {
            let lose = |transit, event| observer.report_loss(now, &transit, event);
            self.queue.push(now, transit, self.in_service, lose);
        } else if self.queue.may_be_bypassed() {
            self.transmit(now, transit, observer);
        } else {
            self.queue.push(now, transit, 0, |transit, event| observer.report_loss(now, &transit, event));
            self.start(now, observer);
        }
    }

    /// Starts the transmissions that are due, and moves packets whose delay is over into the queue.
    pub(crate) fn advance(&mut self, now: Time, observer: &mut TapReporter<'_>) {
        loop {
            let approaches = self.next_approach();
            if !self.queue.is_empty() && self.free_at() + ROUNDING <= now.min(approaches) {
                self.start_next(observer);
            } else if approaches <= now {
                let next = self.approach.as_mut().and_then(|approach| approach.pop());
                let (at, transit) = next.expect("a packet is under way");
                self.enqueue(at, transit, observer);
            } else {
                return;
            }
        }
    }

    /// Starts the next transmission, if it is due.
    pub(crate) fn start_next(&mut self, observer: &mut TapReporter<'_>) {
        self.start(self.free_at(), observer);
    }

    #[inline]
    fn start(&mut self, at: Time, observer: &mut TapReporter<'_>) {
        // The discipline has seen packets that arrived within `ROUNDING`.
        let seen = at.max(self.last_arrival);
        let lose = |transit| observer.report_loss(seen, &transit, TapEvent::DroppedEarly);
        if let Some(transit) = self.queue.pop(seen, lose) {
            self.transmit(at, transit, observer);
        }
    }

    /// Returns the next packet that has arrived by `now` and passes the policer.
    #[inline]
    pub(crate) fn take_arrival(
        &mut self,
        now: Time,
        observer: &mut TapReporter<'_>,
    ) -> Option<PacketInTransit> {
        while self.in_flight.front()?.arrives <= now {
            let InFlight { at_end, transit, .. } = self.in_flight.pop_front()?;
            self.shrink_ring();
            let police = self.police.as_mut().filter(|_| at_end != AtEnd::ArrivesLate);
            if police.is_some_and(|police| !police.admits(now, transit.length())) {
                observer.report_loss(now, &transit, TapEvent::Policed);
            } else if at_end == AtEnd::HeldBack {
                self.insert_in_flight(now + self.reorder_by, AtEnd::ArrivesLate, transit);
            } else {
                return Some(transit);
            }
        }
        None
    }

    /// Shrinks the ring buffer after a burst; otherwise each access would touch another cache line.
    #[inline]
    fn shrink_ring(&mut self) {
        /// Maximum capacity, in packets, of a ring buffer that is not shrunk.
        const SMALL_RING_PACKETS: usize = 64;
        let (length, room) = (self.in_flight.len(), self.in_flight.capacity());
        if room > SMALL_RING_PACKETS && length < room / 8 {
            self.in_flight.shrink_to((2 * length).max(SMALL_RING_PACKETS));
        }
    }

    /// Applies a change to the link.
    pub(crate) fn change(&mut self, now: Time, change: &LinkChange, observer: &mut TapReporter<'_>) {
        match change {
            LinkChange::Up => self.is_up = true,
            LinkChange::Down => {
                self.is_up = false;
                let interrupted = self.interrupted.take().map(|interrupted| interrupted.packets);
                let under_way = self.in_flight.drain(..).chain(interrupted.unwrap_or_default());
                let under_way = under_way.map(|flight| flight.transit);
                let approaching = self.approach.iter_mut().flat_map(|approach| approach.drain());
                for transit in self.queue.drain().into_iter().chain(under_way).chain(approaching) {
                    observer.report_loss(now, &transit, TapEvent::LinkDown);
                }
            }
            LinkChange::Rate(rate) => self.change_rate(now, *rate),
            LinkChange::Loss(loss) => self.loss.change(loss),
            LinkChange::Delay(delay) => match &mut self.approach {
                Some(approach) => approach.change(*delay),
                None => self.propagation.change(*delay),
            },
        }
    }

    /// Sends the remaining part of the packet in transmission at the new rate, which changes the time of its arrival.
    fn change_rate(&mut self, now: Time, rate: EventRate) {
        let mut in_transmission = self.take_in_transmission(now);
        if !self.transmitter.is_sending(now) {
            self.in_service = 0;
        }
        self.transmitter.change(now, rate);
        if self.transmitter.is_stopped() {
            self.interrupted = Some(in_transmission);
            return;
        }
        while let Some(InFlight { arrives, at_end, transit }) = in_transmission.packets.pop_front() {
            let ahead =
                self.in_flight.iter().rev().map(|flight| flight.arrives).find(|other| *other <= arrives);
            let exact = self.transmitter.free_at() + arrives.since(in_transmission.due);
            let later = exact.max(ahead.unwrap_or_default());
            self.propagation.move_arrival(arrives, later);
            self.insert_in_flight(later, at_end, transit);
        }
    }

    /// Removes the packet in transmission and its copies from `in_flight`.
    fn take_in_transmission(&mut self, now: Time) -> Interrupted {
        if let Some(interrupted) = self.interrupted.take() {
            return interrupted;
        }
        let due = self.transmitter.free_at();
        let is_sending = due > now;
        let Some(number) = self.number_in_transmission.filter(|_| is_sending) else {
            return Interrupted { due, packets: VecDeque::new() };
        };
        let (packets, others) = self.in_flight.drain(..).partition(|flight| flight.transit.number == number);
        self.in_flight = others;
        Interrupted { due, packets }
    }

    #[inline]
    fn is_dropped_early(&mut self, now: Time, packet: &mut Packet) -> bool {
        let free_at = self.free_at();
        let Some(red) = &mut self.red else { return false };
        red.drops_or_marks(now, self.queue.backlog(), free_at, self.transmitter.rate())
            && !red.mark_if_allowed(packet)
    }

    #[inline]
    fn transmit(&mut self, now: Time, mut transit: PacketInTransit, observer: &mut TapReporter<'_>) {
        observer.report(now, transit.from, &transit, TapEvent::Dequeued);
        self.in_service = transit.length();
        self.number_in_transmission = Some(transit.number);
        let departs = self.transmitter.transmit(now, self.in_service);
        // Every effect draws for every packet, so that one does not shift the draws of another.
        let lost = self.loss.hits_next();
        let duplicated = self.duplication.hits_next();
        let corrupted = self.corruption.hits_next();
        let held_back = self.reordering.hits_next();
        if lost {
            return observer.report_loss(now, &transit, TapEvent::Lost);
        }
        // A reordered packet must not delay later ones, so it does not count for their order.
        let (arrives, at_end) = match (held_back, &self.police) {
            (false, _) => (self.propagation.arrival(departs), AtEnd::Arrives),
            (true, None) => (self.propagation.reordered_arrival(departs) + self.reorder_by, AtEnd::Arrives),
            (true, Some(_)) => (self.propagation.reordered_arrival(departs), AtEnd::HeldBack),
        };
        transit.packet.corrupted |= corrupted;
        if duplicated {
            let PacketInTransit { from, to, number, ref packet, .. } = transit;
            self.insert_in_flight(arrives, at_end, PacketInTransit::new(from, to, number, packet.clone()));
        }
        self.insert_in_flight(arrives, at_end, transit);
    }

    /// Inserts a packet so that `in_flight` stays sorted by arrival, usually at the end.
    #[inline]
    fn insert_in_flight(&mut self, arrives: Time, at_end: AtEnd, transit: PacketInTransit) {
        let flight = InFlight { arrives, at_end, transit };
        if self.in_flight.back().is_none_or(|last| last.arrives <= arrives) {
            return self.in_flight.push_back(flight);
        }
        let behind = self.in_flight.iter().rev().take_while(|flight| flight.arrives > arrives).count();
        self.in_flight.insert(self.in_flight.len() - behind, flight);
    }
}
