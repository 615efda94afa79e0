//! Measures the cost of a request and its reply: two endpoints, an in-memory pipe, virtual time.

use std::collections::VecDeque;
use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use hol_base::{Duration, Rng, Seed, Time};
use hol_sctp::{Config, Endpoint};
use hol_transport::{Command, Endpoint as _, Event, Input, Message, Output, Reliability, drain};
use hol_wire::{Address, Packet};

const CLIENT: Address = hol_wire::ipv4(10, 0, 0, 1);
const SERVER: Address = hol_wire::ipv4(10, 0, 0, 2);
const DELAY: Duration = Duration::from_millis(10);
/// Number of requests per second.
const RATE: u64 = 1000;

/// A client that sends requests at a constant rate and a server that replies.
struct Pipe {
    sides: [Endpoint; 2],
    deadlines: [Option<Time>; 2],
    wire: VecDeque<(Time, usize, Packet)>,
    rng: Rng,
    loss: f64,
    payload: Bytes,
    now: Time,
    sent: u64,
    answered: u64,
    streams: u16,
}

impl Pipe {
    fn new(streams: u16, loss: f64) -> Self {
        let config = Config { streams, nagle: false, ..Config::linux_6_12() };
        let client = Endpoint::connect(
            config.clone(),
            vec![CLIENT],
            1,
            vec![SERVER],
            2,
            Seed(1).derive("client").rng(),
        );
        let server = Endpoint::listen(config, vec![SERVER], 2, Seed(1).derive("server").rng());
        let mut pipe = Self {
            sides: [client, server],
            deadlines: [None; 2],
            wire: VecDeque::new(),
            rng: Seed(1).derive("loss").rng(),
            loss: 0.0,
            payload: Bytes::from_static(&[7; 100]),
            now: Time::ZERO,
            sent: 0,
            answered: 0,
            streams,
        };
        pipe.sides[0].handle(Time::ZERO, Input::Command(Command::Connect));
        pipe.settle(0);
        pipe.run_to(Time::from_millis(1000));
        pipe.loss = loss;
        pipe
    }

    fn settle(&mut self, side: usize) {
        let Self { sides, wire, rng, now, answered, loss, payload, .. } = self;
        self.deadlines[side] = drain(&mut sides[side], *now, |endpoint, output| match output {
            Output::Transmit(packet) if !rng.chance(*loss) => {
                wire.push_back((*now + DELAY, 1 - side, packet));
            }
            Output::Event(Event::Received(_)) if side == 0 => *answered += 1,
            Output::Event(Event::Received(request)) => send(endpoint, *now, request.stream, payload),
            _ => {}
        });
    }

    fn run_to(&mut self, until: Time) {
        loop {
            let timer = self.deadlines.iter().flatten().min().copied().unwrap_or(Time::MAX);
            let arrival = self.wire.front().map_or(Time::MAX, |(at, ..)| *at);
            if arrival.min(timer) > until {
                break;
            }
            self.now = arrival.min(timer);
            if arrival <= timer
                && let Some((_, side, packet)) = self.wire.pop_front()
            {
                self.sides[side].handle(self.now, Input::Packet(packet));
                self.settle(side);
            } else {
                for side in 0..2 {
                    if self.deadlines[side] == Some(timer) {
                        self.settle(side);
                    }
                }
            }
        }
        self.now = until;
    }

    fn transact(&mut self) {
        let next = self.now + Duration::from_nanos(1_000_000_000 / RATE);
        self.run_to(next);
        let stream = (self.sent % u64::from(self.streams)) as u16;
        if self.sides[0].can_send(self.payload.len()) {
            self.sent += 1;
            send(&mut self.sides[0], self.now, stream, &self.payload);
            self.settle(0);
        }
    }
}

fn send(endpoint: &mut Endpoint, now: Time, stream: u16, payload: &Bytes) {
    let reliability = Reliability::Full;
    let message = Message { stream, unordered: false, reliability, ppid: 0, payload: payload.clone() };
    endpoint.handle(now, Input::Command(Command::Send(message)));
}

fn transactions(criterion: &mut Criterion) {
    for loss in [0.0, 0.01] {
        for streams in [1, 8, 1024] {
            let mut pipe = Pipe::new(streams, loss);
            let name = format!("transaction/{streams} streams/{}%", loss * 100.0);
            criterion.bench_function(&name, |bencher| bencher.iter(|| pipe.transact()));
            black_box(pipe.answered);
        }
    }
}

criterion_group!(benches, transactions);
criterion_main!(benches);
