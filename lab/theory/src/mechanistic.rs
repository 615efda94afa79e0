//! A small event simulation, independent of the model world, as a cross-check.
//!
//! It simulates each packet, acknowledgement and timer; packets and acknowledgements may be lost. It omits everything else:
//! congestion window, bundling, delayed acknowledgements, serialization.

mod sender;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hol_base::{Rng, Seed};

use self::sender::Sender;
use crate::{Arrivals, Recovery, Transfer};

/// Returns the response times of `n` transactions in ms, in the order of the requests.
pub fn simulate(transfer: &Transfer, seed: Seed, n: usize) -> Vec<f64> {
    let mut world = Transmission::new(transfer, seed, n);
    world.schedule_request(0);
    while let Some(Reverse((now, _, event))) = world.events.pop() {
        world.now = now;
        world.handle(event);
    }
    let took = |(sent, answered): (&u64, &u64)| (answered - sent) as f64 / 1e6;
    world.requested.iter().zip(&world.answered).map(took).collect()
}

/// A channel: its direction (0 for requests, 1 for replies) and the index of its connection.
type Channel = (usize, usize);
const UP: usize = 0;
const DOWN: usize = 1;

/// An event of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The client sends the request with this number.
    Request(usize),
    /// The packet with this number arrives on a channel.
    Data(Channel, usize),
    /// An acknowledgment reaches the sender of a channel. It reports this many entries from the start of the receiver's
    /// log.
    Ack(Channel, usize),
    /// The timer of a channel's sender expires; this has no effect if the timer was set again.
    Timer(Channel),
}

/// One direction: both ends of its connections, and the messages that have arrived and been delivered.
struct Direction {
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    arrived: Vec<bool>,
    /// The number of the next message to be delivered on each stream.
    next: BTreeMap<usize, usize>,
    losses: Rng,
}

/// The receiving end of a channel.
#[derive(Default)]
struct Receiver {
    /// The number of the message in each packet, by packet number.
    messages: Vec<usize>,
    arrived: Vec<bool>,
    /// Packet numbers in the order in which the packets first arrived. An acknowledgment reports the start of this
    /// list, so it also reports what lost acknowledgments would have reported.
    log: Vec<usize>,
}

/// The state of the simulation.
struct Transmission<'a> {
    transfer: &'a Transfer,
    /// The current time, in ns.
    now: u64,
    /// The events by time, then by order of creation.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Number of events created so far.
    scheduled: u64,
    directions: [Direction; 2],
    arrivals: Rng,
    /// When each request was sent, in ns.
    requested: Vec<u64>,
    /// When the reply to each request was delivered, in ns.
    answered: Vec<u64>,
}

impl<'a> Transmission<'a> {
    fn new(transfer: &'a Transfer, seed: Seed, n: usize) -> Self {
        let seed = seed.derive("mechanistic");
        let direction = |name| Direction {
            senders: (0..transfer.connections()).map(|_| Sender::new(transfer)).collect(),
            receivers: (0..transfer.connections()).map(|_| Receiver::default()).collect(),
            arrived: vec![false; n],
            next: BTreeMap::new(),
            losses: seed.derive(name).rng(),
        };
        Self {
            transfer,
            now: 0,
            events: BinaryHeap::new(),
            scheduled: 0,
            directions: [direction("up"), direction("down")],
            arrivals: seed.derive("arrivals").rng(),
            requested: vec![0; n],
            answered: vec![0; n],
        }
    }

    fn schedule(&mut self, time: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    fn schedule_request(&mut self, message: usize) {
        if message < self.requested.len() {
            let period = self.transfer.period();
            let gap = match self.transfer.arrivals {
                Arrivals::Periodic => period,
                Arrivals::Poisson => self.arrivals.exponential(period as f64) as u64,
            };
            self.schedule(self.now + gap, Event::Request(message));
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Request(message) => {
                self.requested[message] = self.now;
                self.send(UP, message);
                self.schedule_request(message + 1);
            }
            Event::Data(channel, packet) => self.receive(channel, packet),
            Event::Ack(channel, known) => {
                let (way, which) = channel;
                let direction = &mut self.directions[way];
                let log = &direction.receivers[which].log[..known];
                let resend = direction.senders[which].acknowledge(self.now, log);
                self.resend(channel, &resend);
            }
            Event::Timer(channel) => {
                let (way, which) = channel;
                let resend = self.directions[way].senders[which].handle_timer(self.now);
                self.resend(channel, &resend);
            }
        }
    }

    fn send(&mut self, way: usize, message: usize) {
        let channel = (way, message % self.transfer.connections() as usize);
        let Direction { senders, receivers, .. } = &mut self.directions[way];
        let packet = senders[channel.1].send(self.now);
        receivers[channel.1].messages.push(message);
        receivers[channel.1].arrived.push(false);
        self.transmit(channel, packet, false);
        self.set_timer(channel);
    }

    fn resend(&mut self, channel: Channel, packets: &[usize]) {
        for packet in packets {
            self.transmit(channel, *packet, true);
        }
        self.set_timer(channel);
    }

    fn transmit(&mut self, channel: Channel, packet: usize, again: bool) {
        let lost = self.draws_loss(channel.0);
        if !lost || (again && self.is_ideal()) {
            self.schedule(self.now + self.transfer.one_way_delay.as_nanos(), Event::Data(channel, packet));
        }
    }

    fn draws_loss(&mut self, way: usize) -> bool {
        self.directions[way].losses.chance(self.transfer.loss.value())
    }

    fn is_ideal(&self) -> bool {
        matches!(self.transfer.recovery, Recovery::Ideal { .. })
    }

    /// Schedules the expiry of the channel's timer. Expiries of a timer that was set again stay in the queue; the
    /// sender ignores them.
    fn set_timer(&mut self, channel: Channel) {
        if let Some(deadline) = self.directions[channel.0].senders[channel.1].take_new_deadline() {
            self.schedule(deadline, Event::Timer(channel));
        }
    }

    fn receive(&mut self, channel: Channel, packet: usize) {
        let (way, which) = channel;
        let Direction { receivers, arrived, .. } = &mut self.directions[way];
        let receiver = &mut receivers[which];
        if !std::mem::replace(&mut receiver.arrived[packet], true) {
            receiver.log.push(packet);
        }
        let (known, message) = (receiver.log.len(), receiver.messages[packet]);
        arrived[message] = true;
        // Acknowledgements are sent in the other direction, and may be lost there.
        if !self.draws_loss(1 - way) || self.is_ideal() {
            self.schedule(self.now + self.transfer.one_way_delay.as_nanos(), Event::Ack(channel, known));
        }
        self.deliver(way, message);
    }

    /// Delivers the messages that are now in order, on the stream of message `message`.
    fn deliver(&mut self, way: usize, message: usize) {
        let streams = self.transfer.streams as usize;
        let stream = message % streams;
        loop {
            let direction = &mut self.directions[way];
            let next = direction.next.entry(stream).or_insert(stream);
            if !direction.arrived.get(*next).is_some_and(|arrived| *arrived) {
                return;
            }
            let delivered = std::mem::replace(next, *next + streams);
            if way == UP {
                self.send(DOWN, delivered);
            } else {
                self.answered[delivered] = self.now;
            }
        }
    }
}
