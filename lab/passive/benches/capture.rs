//! Measures the time to process a packet of TCP downloads, each captured as sent and as received.

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hol_base::Time;
use hol_network::TapEvent;
use hol_passive::{ObservedPacket, measure};
use hol_wire::tcp::{Flags, Options, Segment, SeqNum, Timestamps};
use hol_wire::{Packet, SendTimes};

const SIGHTINGS: usize = 100_000;
const CONNECTIONS: u16 = 20;
const SEGMENT: u32 = 1448;

fn segment(port: u16, down: bool, seq: u32, flags: Flags, payload: &[u8]) -> Vec<u8> {
    let (client, server) = (hol_wire::ipv4(10, 0, 0, 1), hol_wire::ipv4(10, 0, 0, 2));
    let (source_port, destination_port) = if down { (80, port) } else { (port, 80) };
    let (from, to) = if down { (server, client) } else { (client, server) };
    let options = Options { timestamps: Some(Timestamps { value: seq, echo: 0 }), ..Options::default() };
    let (payload, stamp) = (Bytes::copy_from_slice(payload), SendTimes::default());
    let (seq, ack) = (SeqNum(seq), SeqNum(0));
    let segment =
        Segment { source_port, destination_port, seq, ack, flags, window: 500, options, payload, stamp };
    Packet::new(from, to, segment).to_bytes().to_vec()
}

/// Returns the packets of connections that take turns: each has a request, then the segments of a response, with an
/// acknowledgment for every two.
fn packets() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for port in 1..=CONNECTIONS {
        packets.push(segment(port, false, 0, Flags::SYN, b""));
        packets.push(segment(port, true, 0, Flags::SYN | Flags::ACK, b""));
        packets.push(segment(port, false, 1, Flags::ACK, b"GET / HTTP/1.1\r\n\r\n"));
        packets.push(segment(
            port,
            true,
            1,
            Flags::ACK,
            b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
        ));
    }
    for turn in 0.. {
        for port in 1..=CONNECTIONS {
            if packets.len() * 2 >= SIGHTINGS {
                return packets;
            }
            let seq = 48 + turn / 3 * 2 * SEGMENT + turn % 3 * SEGMENT;
            packets.push(match turn % 3 {
                2 => segment(port, false, 19 + turn, Flags::ACK, b""),
                _ => segment(port, true, seq, Flags::ACK, &[b'x'; SEGMENT as usize]),
            });
        }
    }
    packets
}

/// Returns the packets as sent and as received, in order of time, with 20 packets in flight.
fn observed_packets(packets: &[Vec<u8>]) -> Vec<ObservedPacket<'_>> {
    let mut all: Vec<_> = (0..)
        .zip(packets)
        .flat_map(|(number, octets)| {
            let at = |late: u64| Time::from_nanos(1000 * number + late);
            [
                ObservedPacket { time: at(0), event: TapEvent::Sent, octets },
                ObservedPacket { time: at(20_000), event: TapEvent::Received, octets },
            ]
        })
        .collect();
    all.sort_by_key(|observed| observed.time);
    all
}

fn capture(c: &mut Criterion) {
    let packets = packets();
    let observed_packets = observed_packets(&packets);
    let traffic = measure(observed_packets.iter().copied());
    assert_eq!((traffic.records.len(), traffic.totals.unread), (2 * usize::from(CONNECTIONS), 0));
    let mut group = c.benchmark_group("passive");
    group.throughput(Throughput::Elements(observed_packets.len() as u64));
    group.sample_size(20);
    group.bench_function("capture", |b| b.iter(|| measure(observed_packets.iter().copied())));
    group.finish();
}

criterion_group!(benches, capture);
criterion_main!(benches);
