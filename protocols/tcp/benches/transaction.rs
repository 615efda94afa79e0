//! Measures the processing time of a request and its reply, both endpoints together, over a path in memory.

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use hol_base::{Duration, Seed, Time};
use hol_tcp::{Config, Endpoint};
use hol_transport::{Command, Endpoint as _, Event, Input, Message, Output, Reliability};
use hol_wire::Packet;
use std::collections::VecDeque;

const ONE_WAY: Duration = Duration::from_millis(10);
const PERIOD: Duration = Duration::from_millis(10);

/// A client that sends every 10 ms, and a server that replies. Packets arrive 10 ms after they were sent,
/// or are lost.
struct World {
    now: Time,
    ends: [Endpoint; 2],
    waits: [Option<Time>; 2],
    flying: VecDeque<(Time, usize, Packet)>,
    loss: f64,
    rng: hol_base::Rng,
    replies: u64,
}

fn message() -> Command {
    let payload = Bytes::from_static(&[7; 100]);
    Command::Send(Message { stream: 0, unordered: false, reliability: Reliability::Full, ppid: 0, payload })
}

impl World {
    fn new(loss: f64) -> Self {
        let config = Config { nagle: hol_tcp::Nagle::Off, ..Config::linux_6_12() };
        let (a, z) = (([10, 0, 0, 1].into(), 1000), ([10, 0, 0, 2].into(), 80));
        let ends = [
            Endpoint::connect(config.clone(), a, z, Seed(1).rng()),
            Endpoint::listen(config, z, Seed(2).rng()),
        ];
        let mut world = Self {
            now: Time::ZERO,
            ends,
            waits: [None; 2],
            flying: VecDeque::new(),
            loss,
            rng: Seed(3).rng(),
            replies: 0,
        };
        world.input(0, Input::Command(Command::Connect));
        world.run(Time::from_millis(5000));
        world
    }

    fn input(&mut self, end: usize, input: Input) {
        self.ends[end].handle(self.now, input);
        self.settle(end);
    }

    fn settle(&mut self, end: usize) {
        loop {
            match self.ends[end].poll(self.now) {
                Output::Transmit(packet) => {
                    if !self.rng.chance(self.loss) {
                        self.flying.push_back((self.now + ONE_WAY, 1 - end, packet));
                    }
                }
                Output::Event(Event::Received(received)) if end == 1 => {
                    for _ in 0..received.payload.len() / 100 {
                        self.ends[1].handle(self.now, Input::Command(message()));
                    }
                }
                Output::Event(Event::Received(received)) => {
                    self.replies += received.payload.len() as u64 / 100;
                }
                Output::Event(_) => {}
                Output::Wait(at) => {
                    self.waits[end] = at;
                    return;
                }
            }
        }
    }

    fn run(&mut self, end: Time) {
        loop {
            let arrival = self.flying.front().map(|(at, ..)| *at);
            let timer = self.waits[0].into_iter().chain(self.waits[1]).min();
            let Some(next) = arrival.into_iter().chain(timer).min().filter(|next| *next <= end) else {
                break;
            };
            self.now = next;
            if arrival == Some(next) {
                if let Some((_, to, packet)) = self.flying.pop_front() {
                    self.input(to, Input::Packet(packet));
                }
            } else {
                self.settle(usize::from(self.waits[0] != Some(next)));
            }
        }
        self.now = end;
    }

    fn transaction(&mut self) {
        self.input(0, Input::Command(message()));
        self.run(self.now + PERIOD);
    }
}

fn transaction(criterion: &mut Criterion) {
    for (name, loss) in [("transaction/no-loss", 0.0), ("transaction/1%-loss", 0.01)] {
        let mut world = World::new(loss);
        criterion.bench_function(name, |bencher| bencher.iter(|| world.transaction()));
        world.run(world.now + Duration::from_secs(5));
        assert!(world.replies > 0, "no reply arrived");
    }
}

criterion_group!(benches, transaction);
criterion_main!(benches);
