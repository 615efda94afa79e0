//! Two endpoints and a network between them that loses, duplicates, delays and reorders packets.

use std::collections::BTreeMap;

use bytes::Bytes;
use hol_base::{Digest, Digester, Duration, Rng, Seed, Time};
use hol_transport::{
    Command, Endpoint as _, Event, Input, Message, Output, ReceivedData, Reliability, drain,
};
use hol_wire::Packet;

use super::script::{LOCAL, LOCAL_PORT, REMOTE, REMOTE_PORT};
use crate::{Config, Endpoint};

/// The faults of each path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Network {
    pub(super) loss: f64,
    pub(super) duplication: f64,
    pub(super) delay: Duration,
    /// Maximum random delay of a packet in addition.
    pub(super) jitter: Duration,
    pub(super) paths: usize,
}

impl Network {
    pub(super) const PERFECT: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        delay: Duration::from_millis(10),
        jitter: Duration::ZERO,
        paths: 1,
    };
}

/// Two endpoints: side 0 is active, side 1 passive.
pub(super) struct Pair {
    pub(super) sides: [Endpoint; 2],
    pub(super) events: [Vec<(Time, Event)>; 2],
    pub(super) now: Time,
    /// Whether each path loses everything.
    pub(super) cut: [bool; 2],
    network: Network,
    rng: Rng,
    deadlines: [Option<Time>; 2],
    /// The packets in transit by arrival, then by order of sending.
    wire: BTreeMap<(Time, u64), (usize, Packet)>,
    sent: u64,
    digester: Digester,
    waiting: [Vec<Message>; 2],
}

impl Pair {
    pub(super) fn new(config: &Config, network: Network, seed: u64) -> Self {
        let mut pair = Self::unconnected(config, network, seed, network.paths);
        pair.command(0, Command::Connect);
        pair
    }

    fn unconnected(config: &Config, network: Network, seed: u64, addresses: usize) -> Self {
        let rng = |name: &str| Seed(seed).derive(name).rng();
        let local = LOCAL[..addresses].to_vec();
        let remote = || REMOTE[..network.paths].to_vec();
        let active =
            Endpoint::connect(config.clone(), local, LOCAL_PORT, remote(), REMOTE_PORT, rng("active"));
        let passive = Endpoint::listen(config.clone(), remote(), REMOTE_PORT, rng("passive"));
        Self {
            sides: [active, passive],
            events: [Vec::new(), Vec::new()],
            now: Time::ZERO,
            cut: [false; 2],
            network,
            rng: rng("network"),
            deadlines: [None; 2],
            wire: BTreeMap::new(),
            sent: 0,
            digester: Digester::new(),
            waiting: [Vec::new(), Vec::new()],
        }
    }

    /// Returns a pair after the handshake.
    pub(super) fn connected(config: &Config, network: Network, seed: u64) -> Self {
        let mut pair = Self::new(config, network, seed);
        pair.establish();
        pair
    }

    fn establish(&mut self) {
        self.run_while(Duration::from_secs(3600), |pair| {
            pair.sides.iter().any(|side| side.state_name() != "ESTABLISHED")
        });
        assert_eq!(self.sides.each_ref().map(Endpoint::state_name), ["ESTABLISHED"; 2]);
    }

    /// Returns a pair after the handshake, of which the active side so far has only the first of its addresses.
    pub(super) fn connected_from_one(config: &Config, network: Network, seed: u64) -> Self {
        let mut pair = Self::unconnected(config, network, seed, 1);
        pair.command(0, Command::Connect);
        pair.establish();
        pair
    }

    pub(super) fn command(&mut self, side: usize, command: Command) {
        self.input(side, Input::Command(command));
    }

    pub(super) fn input(&mut self, side: usize, input: Input) {
        self.sides[side].handle(self.now, input);
        self.settle(side);
    }

    /// Sends a message now or as soon as there is room.
    pub(super) fn send(&mut self, side: usize, message: Message) {
        self.waiting[side].push(message);
        self.offer(side);
        self.settle(side);
    }

    pub(super) fn send_numbered(&mut self, side: usize, stream: u16, number: u32, reliability: Reliability) {
        let payload = Bytes::copy_from_slice(&number.to_be_bytes());
        self.send(side, Message { stream, unordered: false, reliability, ppid: 0, payload });
    }

    fn offer(&mut self, side: usize) {
        while let Some(message) = self.waiting[side].first()
            && self.sides[side].can_send(message.payload.len())
        {
            let message = self.waiting[side].remove(0);
            self.sides[side].handle(self.now, Input::Command(Command::Send(message)));
        }
    }

    pub(super) fn all_accepted(&self) -> bool {
        self.waiting.iter().all(Vec::is_empty)
    }

    fn settle(&mut self, side: usize) {
        let mut outputs = Vec::new();
        self.deadlines[side] = drain(&mut self.sides[side], self.now, |_, output| outputs.push(output));
        for output in outputs {
            match output {
                Output::Transmit(packet) => self.carry(side, &packet),
                Output::Event(event) => {
                    let writable = event == Event::Writable;
                    self.events[side].push((self.now, event));
                    if writable {
                        self.offer(side);
                        self.settle(side);
                    }
                }
                Output::Wait(_) => unreachable!("drain ends there"),
            }
        }
    }

    fn carry(&mut self, from: usize, packet: &Packet) {
        let Network { loss, duplication, delay, jitter, .. } = self.network;
        self.digester.add_all([self.now.as_nanos(), from as u64, packet.length() as u64]);
        let path = usize::from([LOCAL[1], REMOTE[1]].contains(&packet.destination));
        let copies = 1 + u32::from(self.rng.chance(duplication));
        for _ in 0..copies {
            let late = Duration::from_nanos(self.rng.below(jitter.as_nanos() + 1));
            if !self.rng.chance(loss) && !self.cut[path] {
                self.sent += 1;
                self.wire.insert((self.now + delay + late, self.sent), (1 - from, packet.clone()));
            }
        }
    }

    /// Handles one event, the next arrival or timer; returns false if there is none before `until`.
    fn step(&mut self, until: Time) -> bool {
        let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
        let timer = self.deadlines.iter().flatten().min().copied();
        let Some(next) = arrival.into_iter().chain(timer).min().filter(|at| *at <= until) else {
            return false;
        };
        self.now = next;
        if arrival == Some(next) {
            if let Some((_, (side, packet))) = self.wire.pop_first() {
                self.sides[side].handle(self.now, Input::Packet(packet));
                self.settle(side);
            }
        } else {
            (0..2)
                .filter(|side| self.deadlines[*side] == Some(next))
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|side| self.settle(side));
        }
        true
    }

    /// Runs while `go_on` returns true, for at most `span`.
    pub(super) fn run_while(&mut self, span: Duration, mut go_on: impl FnMut(&Self) -> bool) {
        let until = self.now + span;
        while go_on(self) && self.step(until) {}
    }

    /// Runs until this time after the start, if that is not over.
    pub(super) fn run_until(&mut self, since_start: Duration) {
        self.run((Time::ZERO + since_start).saturating_since(self.now));
    }

    pub(super) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
        self.now = until;
    }

    /// Closes from side 0 and runs until both have ended.
    pub(super) fn close(&mut self) {
        self.command(0, Command::Close);
        self.run_while(Duration::from_secs(3600), |pair| !pair.sides.iter().all(Endpoint::is_closed));
    }

    pub(super) fn received(&self, side: usize) -> Vec<&ReceivedData> {
        let message = |(_, event): &'_ (Time, Event)| matches!(event, Event::Received(_));
        let events = self.events[side].iter().filter(|event| message(event));
        events
            .map(|(_, event)| if let Event::Received(message) = event { message } else { unreachable!() })
            .collect()
    }

    /// Returns the numbers of the messages that `side` received on `stream`.
    pub(super) fn numbers(&self, side: usize, stream: u16) -> Vec<u32> {
        let messages = self.received(side).into_iter().filter(|message| message.stream == stream);
        messages
            .map(|message| {
                message.payload.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
            })
            .collect()
    }

    pub(super) fn digest(&self) -> Digest {
        self.digester.finish()
    }
}
