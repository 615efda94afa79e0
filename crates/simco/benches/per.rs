//! What one PER transaction costs in the codec and the middlebox.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use hol_base::Time;
use hol_simco::{
    AddressTuple, Body, Capabilities, Direction, Enable, Lifetime, Location, Message, Middlebox,
    PerParameters, PortParity, Reply, Request, Tid, Version,
};

const UDP: u8 = 17;

fn per() -> Message {
    let enable = Enable {
        parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
        internal: AddressTuple::of_host(Location::Internal, UDP, "192.0.2.1:5004".parse().unwrap()),
        external: AddressTuple::of_host(Location::External, UDP, "198.51.100.7:0".parse().unwrap()),
        lifetime: Lifetime(60),
    };
    Message::request(Tid(1), Request::Per { enable, gid: None })
}

fn middlebox() -> Middlebox {
    let mut middlebox = Middlebox::new(Capabilities::firewall(Lifetime(3600)));
    let se = Request::Se { version: Version::SIMCO_3_0, challenge: None };
    middlebox.handle(Time::ZERO, &Message::request(Tid(0), se).to_bytes());
    middlebox
}

fn codec(c: &mut Criterion) {
    let request = per();
    let request_octets = request.to_bytes();
    let reply = middlebox().handle(Time::ZERO, &request_octets).messages.remove(0);
    let reply_octets = reply.to_bytes();
    c.bench_function("PER request, encode", |b| b.iter(|| black_box(&request).to_bytes()));
    c.bench_function("PER request, decode", |b| b.iter(|| Message::parse(black_box(&request_octets))));
    c.bench_function("PER reply, encode", |b| b.iter(|| black_box(&reply).to_bytes()));
    c.bench_function("PER reply, decode", |b| b.iter(|| Message::parse(black_box(&reply_octets))));
}

/// A second apart, so that the rule table has reached its steady size of sixty.
fn transaction(c: &mut Criterion) {
    let (request, mut middlebox, mut now) = (per().to_bytes(), middlebox(), 0);
    c.bench_function("PER transaction at the middlebox", |b| {
        b.iter(|| {
            now += 1_000_000_000;
            let answer = middlebox.handle(Time::from_nanos(now), black_box(&request));
            assert!(matches!(answer.messages[0].body, Body::Reply(Reply::Per(_))));
            answer.messages[0].to_bytes()
        });
    });
}

criterion_group!(benches, codec, transaction);
criterion_main!(benches);
