//! Transfers bulk data over the endpoint of this crate.

use bytes::Bytes;
use hol_base::{ByteCount, Duration, Seed, Time};
use hol_sctp::{Config, Endpoint};
use hol_transport::{Command, Endpoint as _, Event, Input, Message, Output, Reliability, drain};
use hol_wire::{Address, Packet, Transport, ip_header_length, ipv4, sctp};

use crate::Bulk;
use crate::wire::Wire;

const HERE: Address = ipv4(127, 0, 0, 1);

pub fn transfer(bulk: Bulk) {
    let config = Config {
        mtu: ByteCount((Bulk::MTU + ip_header_length(HERE)) as u64),
        receive_buffer: ByteCount(Bulk::BUFFER as u64),
        send_buffer: ByteCount(Bulk::BUFFER as u64),
        wakeup: Duration::ZERO,
        nagle: true,
        ..Config::linux_6_12()
    };
    let [client, server] = ["client", "server"].map(|end| Seed(1).derive(end).rng());
    let mut ends = [
        Endpoint::connect(config.clone(), vec![HERE], 1, vec![HERE], 2, client),
        Endpoint::listen(config, vec![HERE], 2, server),
    ];
    let payload = Bytes::from(vec![7; bulk.octets]);
    let (mut wire, mut due, mut is_up) = (Wire::default(), [None; 2], false);
    let (mut sent, mut received) = (0, 0);
    ends[0].handle(Time::ZERO, Input::Command(Command::Connect));
    while received < bulk.messages {
        while is_up && sent < bulk.messages && ends[0].can_send(bulk.octets) {
            ends[0].handle(wire.now, Input::Command(Command::Send(message(&payload))));
            sent += 1;
        }
        for (number, end) in ends.iter_mut().enumerate() {
            due[number] = drain(end, wire.now, |_, output| match output {
                Output::Transmit(packet) => wire.send(1 - number, octets(packet)),
                Output::Event(Event::Connected) => is_up |= number == 0,
                Output::Event(Event::Received(_)) => received += 1,
                _ => {}
            });
        }
        for (to, octets) in wire.advance(Time::earliest(due)) {
            let packet = sctp::Packet::parse(octets).unwrap();
            ends[to].handle(wire.now, Input::Packet(Packet::new(HERE, HERE, packet)));
        }
    }
}

fn message(payload: &Bytes) -> Message {
    let reliability = Reliability::Full;
    Message { stream: 0, unordered: false, reliability, ppid: 0, payload: payload.clone() }
}

fn octets(packet: Packet) -> Bytes {
    let Transport::Sctp(packet) = packet.transport else { panic!("{packet} is not SCTP") };
    packet.to_bytes()
}
