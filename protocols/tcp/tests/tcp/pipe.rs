//! Two endpoints and a path between them that loses, duplicates, delays and reorders packets at random.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hol_base::{Duration, Rng, Seed, Time};
use hol_tcp::{Config, Endpoint};
use hol_transport::{Command, Endpoint as _, Event, Input, Output, drain};
use hol_wire::Packet;

/// The faults of the path.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// One-way delay.
    pub delay: Duration,
    /// Maximum random delay in addition, so that packets overtake each other.
    pub jitter: Duration,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub repeat: f64,
}

/// One end, and the events that its application has received.
#[derive(Debug)]
pub struct Side {
    pub endpoint: Endpoint,
    pub received: Vec<u8>,
    pub events: Vec<Event>,
    wait: Option<Time>,
}

/// Both ends, and the packets in transit.
pub struct Pipe {
    pub now: Time,
    pub sides: [Side; 2],
    path: Path,
    rng: Rng,
    flying: BinaryHeap<Reverse<(Time, u64, usize)>>,
    packets: Vec<Option<Packet>>,
    /// Faults happen only before this.
    pub faults_until: Time,
}

impl Side {
    fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, received: Vec::new(), events: Vec::new(), wait: None }
    }

    pub fn saw(&self, event: &Event) -> bool {
        self.events.contains(event)
    }
}

impl Pipe {
    /// Creates a client and a server that are not yet connected.
    pub fn new(config: &Config, path: Path, seed: Seed) -> Self {
        let (client, server) = (([10, 0, 0, 1].into(), 1000), ([10, 0, 0, 2].into(), 80));
        let a = Endpoint::connect(config.clone(), client, server, seed.derive("client").rng());
        let z = Endpoint::listen(config.clone(), server, seed.derive("server").rng());
        Self {
            now: Time::ZERO,
            sides: [Side::new(a), Side::new(z)],
            path,
            rng: seed.derive("path").rng(),
            flying: BinaryHeap::new(),
            packets: Vec::new(),
            faults_until: Time::MAX,
        }
    }

    /// Changes the probability of loss.
    pub fn set_loss(&mut self, loss: f64) {
        self.path.loss = loss;
    }

    /// Passes a command to `side`.
    pub fn command(&mut self, side: usize, command: Command) {
        self.input(side, Input::Command(command));
    }

    fn input(&mut self, side: usize, input: Input) {
        self.sides[side].endpoint.handle(self.now, input);
        self.settle(side);
    }

    fn settle(&mut self, side: usize) {
        let now = self.now;
        let Side { endpoint, received, events, .. } = &mut self.sides[side];
        let mut sent = Vec::new();
        let wait = drain(endpoint, now, |_, output| match output {
            Output::Transmit(packet) => sent.push(packet),
            Output::Event(Event::Received(piece)) => {
                assert!(piece.delivery_times.first_sent <= piece.delivery_times.sent, "{piece:?}");
                assert!(
                    piece.delivery_times.sent <= piece.delivery_times.arrived
                        && piece.delivery_times.arrived <= now
                );
                received.extend_from_slice(&piece.payload);
            }
            Output::Event(event) => events.push(event),
            Output::Wait(_) => {}
        });
        self.sides[side].wait = wait;
        for packet in sent {
            self.launch(1 - side, &packet);
        }
    }

    fn launch(&mut self, to: usize, packet: &Packet) {
        let faulty = self.now < self.faults_until;
        let lost = self.rng.chance(self.path.loss) && faulty;
        let copies = 1 + u64::from(self.rng.chance(self.path.repeat) && faulty);
        for _ in 0..if lost { 0 } else { copies } {
            let jitter = self.path.jitter.as_nanos().max(1);
            let extra = if faulty { self.rng.below(jitter) } else { 0 };
            let at = self.now + self.path.delay + Duration::from_nanos(extra);
            let number = self.packets.len() as u64;
            self.flying.push(Reverse((at, number, to)));
            self.packets.push(Some(packet.clone()));
        }
    }

    /// Performs the next event up to `end`; returns `false` if there is none.
    pub fn step(&mut self, end: Time) -> bool {
        let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
        let timer = self.sides.iter().filter_map(|side| side.wait).min();
        let Some(next) = [arrival, timer].into_iter().flatten().min().filter(|next| *next <= end) else {
            self.now = end;
            return false;
        };
        self.now = next;
        if arrival == Some(next) {
            let Some(Reverse((_, number, to))) = self.flying.pop() else { unreachable!("it was peeked at") };
            let packet = self.packets[number as usize].take().expect("a packet arrives once");
            self.input(to, Input::Packet(packet));
        } else {
            let side = usize::from(self.sides[0].wait != Some(next));
            self.settle(side);
        }
        true
    }

    /// Runs for this time.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.step(end) {}
    }

    /// Connects, and completes the handshake.
    pub fn connect(&mut self) {
        self.command(0, Command::Connect);
        self.run(Duration::from_secs(1));
    }
}
