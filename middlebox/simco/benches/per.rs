//! The cost of a transaction in the codec and in the middlebox, with a filter that does nothing.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hol_base::{Duration, Time};
use hol_simco::{
    AddressTuple, Batch, Capabilities, Config, ConnectionInfo, Direction, Enable, Framing, Lifetime,
    Location, Message, Middlebox, Output, PerParameters, Pid, Policy, PortParity, Request, SessionId, Tid,
    Unauthenticated, Version,
};

const UDP: u8 = 17;

fn per(lifetime: u32) -> Message {
    per_of([192, 0, 2, 1], lifetime)
}

fn per_of(host: [u8; 4], lifetime: u32) -> Message {
    let enable = Enable {
        parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
        internal: AddressTuple::of_host(Location::Internal, UDP, (host, 5004).into()),
        external: AddressTuple::of_host(Location::External, UDP, ([198, 51, 100, 7], 0).into()),
        lifetime: Lifetime(lifetime),
    };
    Message::request(Tid(1), Request::Per { enable, gid: None })
}

/// Returns a PDR (policy disable rule) for UDP between a host and all external hosts.
fn pdr(host: [u8; 4], lifetime: u32) -> Message {
    let external = AddressTuple::of_host(Location::External, UDP, ([0, 0, 0, 0], 0).into());
    let request = Request::Pdr {
        internal: AddressTuple::of_host(Location::Internal, UDP, (host, 0).into()),
        external: AddressTuple { prefix_length: 0, ..external },
        lifetime: Lifetime(lifetime),
    };
    Message::request(Tid(1), request)
}

fn plc(pid: u32, lifetime: u32) -> Message {
    Message::request(Tid(1), Request::Plc { pid: Pid(pid), lifetime: Lifetime(lifetime) })
}

/// A firewall with an open session over one connection.
struct World {
    middlebox: Middlebox,
    session: SessionId,
    batch: Batch,
    out: Vec<u8>,
}

impl World {
    fn new() -> Self {
        Self::with(0)
    }

    /// Creates a firewall with these functions in addition to the packet filter.
    fn with(functions: u8) -> Self {
        let mut config = Config { max_rules: usize::MAX, ..Config::firewall(Lifetime(u32::MAX)) };
        config.capabilities.middlebox_type |= functions;
        let mut middlebox = Middlebox::new(config, Policy::permissive(), Box::new(Unauthenticated)).unwrap();
        let session = middlebox.connect(Time::ZERO, ConnectionInfo::plain(Framing::Stream));
        let mut world = Self { middlebox, session, batch: Batch::default(), out: Vec::new() };
        let se = Request::Se { version: Version::SIMCO_3_0, challenge: None };
        world.ask(Time::ZERO, Message::request(Tid(0), se).to_bytes());
        world
    }

    /// Passes octets from the agent to the middlebox; returns the octets of the answer.
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

/// Measures a transaction from the octets of the request to those of the answer. There is a request per millisecond:
/// each adds a rule, and another rule expires.
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

/// Measures transactions as [`transactions`] does, but with support for PDR and each rule for another host; also
/// measures a PDR that overlaps with one of the rules.
fn blocking(c: &mut Criterion) {
    const HELD: u32 = 1_000_000;
    let (mut world, mut now, mut count) = (World::with(Capabilities::PDR), Time::ZERO, 0_u32);
    // Consecutive hosts have distant addresses.
    let host = |count: u32| {
        let [.., b, c, d] = (count % HELD).wrapping_mul(0x9E_3779).to_be_bytes();
        [10, b, c, d]
    };
    let mut enable = move |world: &mut World| {
        (now, count) = (now + Duration::from_nanos(1_000_000), count.wrapping_add(1));
        world.ask(now, per_of(host(count), HELD / 1000).to_bytes());
        (now, count)
    };
    for _ in 0..HELD {
        enable(&mut world);
    }
    let mut group = c.benchmark_group("PDR is served, 1000000 rules");
    group.bench_function("PER", |b| b.iter(|| enable(&mut world)));
    group.bench_function("PER; PDR that ends it, and its end", |b| {
        b.iter(|| {
            let (now, count) = enable(&mut world);
            let pid = pid(world.ask(now, pdr(host(count), 60).to_bytes()));
            world.ask(now, plc(pid, 0).to_bytes()).len()
        });
    });
    group.finish();
}

/// Measures life cycles of rules, 32 at a time on one connection: enable, change of lifetime, delete.
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

/// Returns the PID in a PER reply, which is its first attribute.
fn pid(reply: &[u8]) -> u32 {
    reply[12..16].try_into().map(u32::from_be_bytes).unwrap()
}

criterion_group!(benches, codec, transactions, blocking, pipelined);
criterion_main!(benches);
