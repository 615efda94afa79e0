//! One line: a queue, a transmitter, and what happens to packets on their way.

use std::collections::VecDeque;

use hol_base::{BitRate, Duration, Ratio, Seed, Time};
use hol_wire::Packet;

use crate::chance::Chance;
use crate::change::Change;
use crate::crossing::Crossing;
use crate::loss::Loss;
use crate::observer::Observer;
use crate::police::Police;
use crate::propagation::Propagation;
use crate::queue::Queue;
use crate::red::Red;
use crate::spec::Settings;
use crate::tap::Fate;
use crate::transmitter::Transmitter;

/// A packet that has left the transmitter, or is about to.
#[derive(Debug)]
struct Flight {
    arrives: Time,
    crossing: Crossing,
}

/// One direction of a link, or a LAN.
///
/// A packet waits in the queue, occupies the transmitter, and then the line decides its fate, but for what the police drops
/// where it ends: lost packets have used the line, and the k-th packet transmitted meets the k-th draw of each effect, whatever the
/// others drew.
#[derive(Debug)]
pub(crate) struct Line {
    mtu: u64,
    up: bool,
    queue: Queue,
    red: Option<Red>,
    transmitter: Transmitter,
    /// Until then others use the channel.
    silent_until: Time,
    /// Octets of the packet that is, or was last, in transmission.
    in_service: u64,
    /// Its number.
    sending: Option<u32>,
    loss: Loss,
    duplication: Chance,
    corruption: Chance,
    reordering: Chance,
    reorder_by: Duration,
    propagation: Propagation,
    /// Ascending by arrival.
    in_flight: VecDeque<Flight>,
    police: Option<Police>,
}

impl Line {
    /// A line whose effects draw from streams of their own, derived from `seed` by name.
    pub(crate) fn new(settings: &Settings, seed: Seed) -> Self {
        let chance = |ratio: Ratio, name| Chance::new(ratio, seed.derive(name));
        Self {
            mtu: settings.mtu.0,
            up: true,
            queue: Queue::new(settings, seed),
            red: Red::new(settings.discipline, seed.derive("red")),
            transmitter: Transmitter::new(settings.rate, settings.overhead.0),
            silent_until: Time::ZERO,
            in_service: 0,
            sending: None,
            loss: Loss::new(&settings.loss, seed.derive("loss")),
            duplication: chance(settings.duplicate, "duplicate"),
            corruption: chance(settings.corrupt, "corrupt"),
            reordering: chance(settings.reorder, "reorder"),
            reorder_by: settings.reorder_by,
            propagation: Propagation::new(settings, seed.derive("jitter")),
            in_flight: VecDeque::new(),
            police: Police::new(settings.police),
        }
    }

    /// When it acts next: a packet arrives, or the next one's transmission starts; [`Time::MAX`] if neither.
    #[inline]
    pub(crate) fn next_action(&self) -> Time {
        let arrival = self.in_flight.front().map_or(Time::MAX, |flight| flight.arrives);
        if self.queue.is_empty() { arrival } else { arrival.min(self.free_at()) }
    }

    /// When it may transmit the next packet.
    #[inline]
    pub(crate) fn free_at(&self) -> Time {
        self.transmitter.free_at().max(self.silent_until)
    }

    /// How many packets wait or are in transmission, and their octets: what the limit of the queue counts.
    pub(crate) fn backlog(&self, now: Time) -> (u64, u64) {
        let (packets, octets) = self.queue.waiting();
        match self.transmitter.free_at() > now {
            true => (packets + 1, octets + self.in_service),
            false => (packets, octets),
        }
    }

    /// When the packet in transmission has left, if there is one.
    pub(crate) fn sends_until(&self, now: Time) -> Option<Time> {
        Some(self.transmitter.free_at()).filter(|until| *until > now)
    }

    /// Until when others use its channel.
    pub(crate) fn silent_until(&self) -> Time {
        self.silent_until
    }

    /// Others use its channel until then.
    pub(crate) fn keep_silent(&mut self, until: Time) {
        self.silent_until = until;
    }

    /// Packets that its queue marked with congestion.
    pub(crate) fn marked(&self) -> u64 {
        self.queue.marked() + self.red.as_ref().map_or(0, Red::marked)
    }

    /// Whether a packet waits that may be transmitted now.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        !self.queue.is_empty() && self.free_at() <= now
    }

    /// A node hands over a packet; what was due before has been started.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, mut crossing: Crossing, observer: &mut Observer<'_>) {
        if !self.up {
            observer.lose(now, &crossing, Fate::LinkDown);
        } else if crossing.length() > self.mtu {
            observer.lose(now, &crossing, Fate::TooLong);
        } else if self.is_dropped_early(now, &mut crossing.packet) {
            observer.lose(now, &crossing, Fate::DroppedEarly);
        } else if self.free_at() > now {
            let lose = |crossing, fate| observer.lose(now, &crossing, fate);
            self.queue.push(now, crossing, self.in_service, lose);
        } else if self.queue.may_be_passed() {
            self.transmit(now, crossing, observer);
        } else {
            self.queue.push(now, crossing, 0, |crossing, fate| observer.lose(now, &crossing, fate));
            self.start(now, observer);
        }
    }

    /// Starts the transmissions that are due.
    pub(crate) fn advance(&mut self, now: Time, observer: &mut Observer<'_>) {
        while self.is_due(now) {
            self.start_next(observer);
        }
    }

    /// Starts to transmit the next packet that waits, when it may.
    pub(crate) fn start_next(&mut self, observer: &mut Observer<'_>) {
        self.start(self.free_at(), observer);
    }

    #[inline]
    fn start(&mut self, at: Time, observer: &mut Observer<'_>) {
        let lose = |crossing| observer.lose(at, &crossing, Fate::DroppedEarly);
        if let Some(crossing) = self.queue.pop(at, lose) {
            self.transmit(at, crossing, observer);
        }
    }

    /// The next packet that has arrived by `now`, and that the police lets pass.
    #[inline]
    pub(crate) fn arrival(&mut self, now: Time, observer: &mut Observer<'_>) -> Option<Crossing> {
        while self.in_flight.front()?.arrives <= now {
            let Flight { crossing, .. } = self.in_flight.pop_front()?;
            self.forget_burst();
            if self.police.as_mut().is_none_or(|police| police.admits(now, crossing.length())) {
                return Some(crossing);
            }
            observer.lose(now, &crossing, Fate::Policed);
        }
        None
    }

    /// The ring that a burst has left is gone through place by place, each another line of the processor's cache.
    #[inline]
    fn forget_burst(&mut self) {
        const SMALL: usize = 64;
        let (length, room) = (self.in_flight.len(), self.in_flight.capacity());
        if room > SMALL && length < room / 8 {
            self.in_flight.shrink_to((2 * length).max(SMALL));
        }
    }

    /// Something about the line changes.
    pub(crate) fn change(&mut self, now: Time, change: &Change, observer: &mut Observer<'_>) {
        match change {
            Change::Up => self.up = true,
            Change::Down => {
                self.up = false;
                let under_way = self.in_flight.drain(..).map(|flight| flight.crossing);
                for crossing in self.queue.drain().into_iter().chain(under_way) {
                    observer.lose(now, &crossing, Fate::LinkDown);
                }
            }
            Change::Rate(rate) => self.change_rate(now, *rate),
            Change::Loss(loss) => self.loss.change(loss),
            Change::Delay(delay) => self.propagation.change(*delay),
        }
    }

    /// What is left of the packet in transmission takes the new rate, and it arrives by that much sooner or later.
    fn change_rate(&mut self, now: Time, rate: BitRate) {
        let due = self.transmitter.free_at();
        self.transmitter.change(now, rate);
        let is_sending = due > now;
        let Some(number) = self.sending.filter(|_| is_sending) else { return };
        let (mut moved, others): (VecDeque<Flight>, VecDeque<Flight>) =
            self.in_flight.drain(..).partition(|flight| flight.crossing.number == number);
        self.in_flight = others;
        while let Some(Flight { arrives, crossing }) = moved.pop_front() {
            let ahead =
                self.in_flight.iter().rev().map(|flight| flight.arrives).find(|other| *other <= arrives);
            let exact = self.transmitter.free_at() + arrives.since(due);
            let later = exact.max(ahead.unwrap_or_default());
            self.propagation.moved(arrives, later);
            self.fly(later, crossing);
        }
    }

    #[inline]
    fn is_dropped_early(&mut self, now: Time, packet: &mut Packet) -> bool {
        let Some(red) = &mut self.red else { return false };
        let idle = now.saturating_since(self.transmitter.free_at().max(self.silent_until));
        let (packets, octets) = self.queue.waiting();
        red.strikes(packets, octets, idle, self.transmitter.rate()) && !red.marks(packet)
    }

    #[inline]
    fn transmit(&mut self, now: Time, mut crossing: Crossing, observer: &mut Observer<'_>) {
        observer.see(now, crossing.from, &crossing, Fate::Dequeued);
        self.in_service = crossing.length();
        self.sending = Some(crossing.number);
        let departs = self.transmitter.transmit(now, self.in_service);
        // Every effect draws for every packet, or one effect would shift the luck of another.
        let lost = self.loss.strikes();
        let duplicated = self.duplication.strikes();
        let corrupted = self.corruption.strikes();
        let held_back = self.reordering.strikes();
        if lost {
            return observer.lose(now, &crossing, Fate::Lost);
        }
        // One that is held back must not hold up those behind it, so the line's order forgets it.
        let arrives = if held_back {
            self.propagation.overtaken(departs) + self.reorder_by
        } else {
            self.propagation.arrival(departs)
        };
        crossing.packet.corrupted |= corrupted;
        if duplicated {
            let Crossing { from, to, number, ref packet, .. } = crossing;
            self.fly(arrives, Crossing::new(from, to, number, packet.clone()));
        }
        self.fly(arrives, crossing);
    }

    /// Keeps `in_flight` ascending; only behind a packet that is held back does this not append.
    #[inline]
    fn fly(&mut self, arrives: Time, crossing: Crossing) {
        let flight = Flight { arrives, crossing };
        if self.in_flight.back().is_none_or(|last| last.arrives <= arrives) {
            return self.in_flight.push_back(flight);
        }
        let behind = self.in_flight.iter().rev().take_while(|flight| flight.arrives > arrives).count();
        self.in_flight.insert(self.in_flight.len() - behind, flight);
    }
}
