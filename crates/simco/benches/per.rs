//! What a transaction costs in the codec and in the middlebox, with a filter that does nothing.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hol_base::{Duration, Time};
use hol_simco::{
    AddressTuple, Batch, Config, Direction, Enable, Framing, Lifetime, Location, Message, Middlebox, Output,
    PerParameters, Pid, Policy, PortParity, Request, SessionId, Tid, Unauthenticated, Underlay, Version,
};

const UDP: u8 = 17;

fn per(lifetime: u32) -> Message {
    let enable = Enable {
        parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
        internal: AddressTuple::of_host(Location::Internal, UDP, "192.0.2.1:5004".parse().unwrap()),
        external: AddressTuple::of_host(Location::External, UDP, "198.51.100.7:0".parse().unwrap()),
        lifetime: Lifetime(lifetime),
    };
    Message::request(Tid(1), Request::Per { enable, gid: None })
}

fn plc(pid: u32, lifetime: u32) -> Message {
    Message::request(Tid(1), Request::Plc { pid: Pid(pid), lifetime: Lifetime(lifetime) })
}

/// A firewall with one open session on a stream.
struct World {
    middlebox: Middlebox,
    session: SessionId,
    batch: Batch,
    out: Vec<u8>,
}

impl World {
    fn new() -> Self {
        let config = Config { most_rules: usize::MAX, ..Config::firewall(Lifetime(u32::MAX)) };
        let mut middlebox = Middlebox::new(config, Policy::open(), Box::new(Unauthenticated)).unwrap();
        let session = middlebox.connect(Time::ZERO, Underlay::plain(Framing::Stream));
        let mut world = Self { middlebox, session, batch: Batch::default(), out: Vec::new() };
        let se = Request::Se { version: Version::SIMCO_3_0, challenge: None };
        world.ask(Time::ZERO, Message::request(Tid(0), se).to_bytes());
        world
    }

    /// Octets in, octets out.
    fn ask(&mut self, now: Time, octets: Bytes) -> &[u8] {
        self.middlebox.receive(now, self.session, octets, &mut self.batch);
        self.out.clear();
        for output in self.batch.release() {
            let Output::Send(_, message) = output else { unreachable!() };
            message.append_to(&mut self.out);
        }
        &self.out
    }
}

fn codec(c: &mut Criterion) {
    let request = per(60);
    let octets = request.to_bytes();
    let reply_octets = Bytes::copy_from_slice(World::new().ask(Time::ZERO, octets.clone()));
    let reply = Message::parse(&reply_octets).unwrap();
    c.bench_function("PER request, encode", |b| b.iter(|| black_box(&request).to_bytes()));
    c.bench_function("PER request, decode", |b| b.iter(|| Message::parse(black_box(&octets))));
    c.bench_function("PER request, decode and encode", |b| {
        b.iter(|| Message::parse(black_box(&octets)).map(|request| request.to_bytes()));
    });
    c.bench_function("PER reply, encode", |b| b.iter(|| black_box(&reply).to_bytes()));
    c.bench_function("PER reply, decode", |b| b.iter(|| Message::parse(black_box(&reply_octets))));
}

/// From octets to octets, a request a millisecond: each begins a rule, and one ends.
fn transactions(c: &mut Criterion) {
    let mut group = c.benchmark_group("PER transactions");
    for seconds in [1, 10, 1000] {
        let (mut world, request, mut now) = (World::new(), per(seconds).to_bytes(), Time::ZERO);
        let mut ask = move || {
            now += Duration::from_nanos(1_000_000);
            world.ask(now, black_box(request.clone())).len()
        };
        let held = 1000 * seconds;
        (0..held).for_each(|_| {
            ask();
        });
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("{held} rules"), |b| b.iter(&mut ask));
    }
    group.finish();
}

/// Rules' lives, 32 at a time on one connection: enable; change of lifetime and delete.
fn pipelined(c: &mut Criterion) {
    let mut world = World::new();
    let enable = per(60);
    let mut group = c.benchmark_group("pipelined");
    group.throughput(Throughput::Elements(96));
    group.bench_function("enable, change, delete", |b| {
        b.iter(|| {
            let mut stream = Vec::with_capacity(32 * 56);
            (0..32).for_each(|_| enable.append_to(&mut stream));
            let pids: Vec<u32> = world.ask(Time::ZERO, stream.into()).chunks(64).map(pid).collect();
            let mut stream = Vec::with_capacity(64 * 24);
            for pid in pids {
                [plc(pid, 90), plc(pid, 0)].iter().for_each(|message| message.append_to(&mut stream));
            }
            assert_eq!(world.ask(Time::ZERO, stream.into()).len(), 32 * (16 + 8));
        });
    });
    group.finish();
}

/// The first attribute of a PER reply.
fn pid(reply: &[u8]) -> u32 {
    reply[12..16].try_into().map(u32::from_be_bytes).unwrap()
}

criterion_group!(benches, codec, transactions, pipelined);
criterion_main!(benches);
