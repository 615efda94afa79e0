//! Two endpoints and a path between them that delays, loses, duplicates and reorders packets by a seed.

use std::collections::BTreeMap;

use bytes::Bytes;
use hol_base::{Digester, Duration, Rng, Seed, Time};
use hol_quic::{Config, Endpoint, MessageMapping};
use hol_transport::{
    Command, Endpoint as _, Event, Input, Message, Output, ReceivedData, Reliability, drain,
};
use hol_wire::{Address, Packet, Transport};

pub const CLIENT: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 1), 40_000);
pub const SERVER: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 2), 4433);

/// Returns the configuration of a stack file with changes.
pub fn config(stack: &str, changes: &str) -> Config {
    let stack = if stack == "rfc" { Config::rfc9000() } else { Config::quinn_0_11() };
    let mut table = toml::Table::try_from(stack).unwrap();
    table.extend(changes.parse::<toml::Table>().unwrap());
    let config: Config = table.try_into().unwrap();
    config.check().unwrap();
    config
}

/// The faults of the path.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub delay: Duration,
    pub jitter: Duration,
    pub loss: f64,
    pub repeat: f64,
}

impl Path {
    /// Returns a path that only delays.
    pub fn clean(millis: u64) -> Self {
        Self { delay: Duration::from_millis(millis), jitter: Duration::ZERO, loss: 0.0, repeat: 0.0 }
    }
}

/// One end, and its results.
#[derive(Debug)]
pub struct Side {
    pub endpoint: Endpoint,
    deadline: Option<Time>,
    /// Events except for data.
    pub events: Vec<(Time, Event)>,
    pub received: Vec<(Time, ReceivedData)>,
    /// Packets that were sent.
    pub sent: Vec<(Time, Packet)>,
}

/// Two ends; the client is side 0.
pub struct Pipe {
    pub now: Time,
    pub sides: [Side; 2],
    path: Path,
    /// The time until which the path has faults.
    pub faults_until: Time,
    /// Numbers of the packets that are lost, by side.
    pub drop: [Vec<usize>; 2],
    on_the_way: BTreeMap<(Time, u64), (usize, Packet)>,
    packets: u64,
    chance: Rng,
    pub digester: Digester,
}

impl Pipe {
    pub fn new(config: &Config, mapping: MessageMapping, path: Path, seed: Seed) -> Self {
        Self::between([config, config], mapping, path, seed)
    }

    /// Returns a pipe between a client and a server with different configurations.
    pub fn between(configs: [&Config; 2], mapping: MessageMapping, path: Path, seed: Seed) -> Self {
        let rng = |name: &str| seed.derive(name).rng();
        let side =
            |endpoint| Side { endpoint, deadline: None, events: vec![], received: vec![], sent: vec![] };
        let client = Endpoint::connect(configs[0].clone(), mapping, CLIENT, SERVER, rng("client"));
        let server = Endpoint::listen(configs[1].clone(), mapping, SERVER, rng("server"));
        Self {
            now: Time::ZERO,
            sides: [side(client), side(server)],
            path,
            faults_until: Time::MAX,
            drop: [vec![], vec![]],
            on_the_way: BTreeMap::new(),
            packets: 0,
            chance: rng("path"),
            digester: Digester::new(),
        }
    }

    /// Returns a connected pipe, over a path that had faults for a short time.
    ///
    /// Not for longer: a client's PTO stays doubled until the server has validated its address, and a
    /// retransmitted acknowledgement turns the wait for it into a round-trip sample. A few losses then exceed
    /// the idle timeout. RFC 9002 sections 5.1 and 6.2.1.
    pub fn connected(config: &Config, mapping: MessageMapping, path: Path, seed: Seed) -> Self {
        let mut pipe =
            Self { faults_until: Time::from_millis(5_000), ..Self::new(config, mapping, path, seed) };
        pipe.command(0, Command::Connect);
        while pipe.sides.iter().any(|side| !side.has(&Event::Connected)) {
            pipe.run(Duration::from_millis(100));
            assert!(pipe.now < Time::from_millis(60_000), "the handshake hangs: {:?}", pipe.sides);
        }
        pipe.faults_until = Time::MAX;
        pipe
    }

    pub fn command(&mut self, side: usize, command: Command) {
        self.give(side, Some(Input::Command(command)));
    }

    pub fn send(&mut self, side: usize, stream: u16, payload: Vec<u8>) {
        let reliability = Reliability::Full;
        let payload = Bytes::from(payload);
        self.command(
            side,
            Command::Send(Message { stream, unordered: false, reliability, ppid: 0, payload }),
        );
    }

    /// Runs for this time.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let packet = self.on_the_way.keys().next().map(|(at, _)| *at);
            let timers = self.sides.iter().enumerate().filter_map(|(side, end)| Some((end.deadline?, side)));
            let timer = timers.min();
            let next = Time::earliest([packet, timer.map(|(at, _)| at)]);
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = next;
            if packet == Some(next) {
                let (_, (side, packet)) = self.on_the_way.pop_first().unwrap();
                self.give(side, Some(Input::Packet(packet)));
            } else if let Some((_, side)) = timer {
                self.give(side, None);
            }
        }
        self.now = until;
    }

    fn give(&mut self, side: usize, input: Option<Input>) {
        let (now, end) = (self.now, &mut self.sides[side]);
        if let Some(input) = input {
            end.endpoint.handle(now, input);
        }
        let mut packets = Vec::new();
        let Side { endpoint, events, received, .. } = end;
        let deadline = drain(endpoint, now, |_, output| match output {
            Output::Transmit(packet) => packets.push(packet),
            Output::Event(Event::Received(data)) => received.push((now, data)),
            Output::Event(event) => events.push((now, event)),
            Output::Wait(_) => unreachable!("drain keeps it"),
        });
        end.deadline = deadline;
        for packet in packets {
            self.transmit(side, &packet);
        }
    }

    fn transmit(&mut self, side: usize, packet: &Packet) {
        if let Transport::Quic(datagram) = &packet.transport {
            let words = datagram
                .payload
                .chunks(8)
                .map(|part| part.iter().fold(0, |word, octet| word << 8 | u64::from(*octet)));
            self.digester.add_all([self.now.as_nanos()]);
            words.for_each(|word| self.digester.add_all([word]));
        }
        let number = self.sides[side].sent.len();
        self.sides[side].sent.push((self.now, packet.clone()));
        let is_faulty = self.now < self.faults_until;
        let Path { delay, jitter, loss, repeat } = self.path;
        let copies = match (self.chance.chance(loss), self.chance.chance(repeat)) {
            (true, _) if is_faulty => 0,
            (_, true) if is_faulty => 2,
            _ => 1,
        };
        if self.drop[side].contains(&number) {
            return;
        }
        for _ in 0..copies {
            let late = if is_faulty && !jitter.is_zero() { self.chance.below(jitter.as_nanos()) } else { 0 };
            let at = self.now + delay + Duration::from_nanos(late);
            self.packets += 1;
            self.on_the_way.insert((at, self.packets), (1 - side, packet.clone()));
        }
    }
}

impl Side {
    pub fn has(&self, event: &Event) -> bool {
        self.events.iter().any(|(_, other)| other == event)
    }

    /// Returns the octets that arrived on a stream, in their order.
    pub fn stream(&self, stream: u16) -> Vec<u8> {
        let own = self.received.iter().filter(|(_, data)| data.stream == stream);
        own.flat_map(|(_, data)| data.payload.to_vec()).collect()
    }
}
