//! Tests 0-RTT: RFC 9001 section 4.6, RFC 9000 section 7.

use hol_base::{Duration, Seed, Time};
use hol_quic::{Config, MessageMapping};
use hol_transport::{Command, Event};
use hol_wire::Transport;
use hol_wire::quic::packets;
use proptest::prelude::*;

use crate::pipe::{Path, Pipe, config};

const DELAY: u64 = 10;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn quinn(zero_rtt: bool) -> Config {
    Config { zero_rtt, ..config("quinn-0.11", "streams = 4\nwakeup = '0s'") }
}

/// Returns a pipe with 0-RTT at the client, and at the server if it `accepts` it, whose client connects.
fn connecting(accepts: bool, path: Path, seed: u64) -> Pipe {
    let configs = [quinn(true), quinn(accepts)];
    let mut pipe = Pipe::between(configs.each_ref(), MessageMapping::Streams, path, Seed(seed));
    pipe.command(0, Command::Connect);
    pipe
}

/// Sends a request as soon as the client may, and a reply as soon as the request arrives; returns when the reply arrives.
fn reply_time(mut pipe: Pipe) -> Time {
    let (mut is_sent, mut is_answered) = (false, false);
    while pipe.now < ms(20_000) {
        if !is_sent && pipe.sides[0].has(&Event::Connected) {
            pipe.send(0, 0, vec![1; 100]);
            is_sent = true;
        }
        if !is_answered && pipe.sides[1].stream(0).len() == 100 {
            pipe.send(1, 0, vec![2; 100]);
            is_answered = true;
        }
        if let [(at, _)] = pipe.sides[0].received[..] {
            return at;
        }
        pipe.run(Duration::from_millis(1));
    }
    panic!("no reply: {:?}", pipe.sides)
}

/// The reply arrives after one round trip, without 0-RTT after two.
#[test]
fn the_reply_arrives_a_round_trip_earlier() {
    let mut without = Pipe::new(&quinn(false), MessageMapping::Streams, Path::clean(DELAY), Seed(1));
    without.command(0, Command::Connect);
    assert_eq!(reply_time(without), ms(4 * DELAY));
    assert_eq!(reply_time(connecting(true, Path::clean(DELAY), 1)), ms(2 * DELAY));
}

/// RFC 9001 section 4.6.2: the client sends the data of rejected 0-RTT packets again when the handshake is complete.
#[test]
fn a_server_that_rejects_early_data_costs_a_round_trip() {
    assert_eq!(reply_time(connecting(false, Path::clean(DELAY), 1)), ms(4 * DELAY));
}

/// RFC 9002 section 6.2: the whole first flight is lost, and the client's first PTO (RFC 9002 section 6.2.2: 999 ms) sends
/// ClientHello again. RFC 9001 section 4.6: early data that were lost follow as 0-RTT or 1-RTT packets.
#[test]
fn a_lost_first_flight_costs_the_first_pto() {
    let configs = [quinn(true), quinn(true)];
    let mut pipe = Pipe::between(configs.each_ref(), MessageMapping::Streams, Path::clean(DELAY), Seed(1));
    pipe.drop[0] = vec![0, 1];
    pipe.command(0, Command::Connect);
    assert_eq!(reply_time(pipe), ms(999 + 6 * DELAY));
}

/// RFC 9000 section 17.2.3: 0-RTT packets have long headers and share the packet numbers of 1-RTT packets; RFC 9001
/// section 4.1.1: the server has no certificate to send.
#[test]
fn early_data_are_in_zero_rtt_packets() {
    let mut pipe = connecting(true, Path::clean(DELAY), 1);
    pipe.send(0, 0, vec![1; 3000]);
    pipe.run(Duration::from_secs(1));
    assert_eq!(pipe.sides[1].stream(0).len(), 3000);
    let mut numbers = Vec::new();
    for (at, packet) in &pipe.sides[0].sent {
        let Transport::Quic(datagram) = &packet.transport else { panic!("{packet}") };
        for packet in packets(&datagram.payload).map(Result::unwrap) {
            if packet.space == hol_wire::quic::PacketNumberSpace::Data {
                assert_eq!(packet.is_zero_rtt, *at == ms(0), "{packet}");
                numbers.push(packet.number.number);
            }
        }
    }
    assert!(numbers.len() > 3 && numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let octets = |pipe: &Pipe| {
        pipe.sides[1]
            .sent
            .iter()
            .take_while(|(at, _)| *at == ms(DELAY))
            .map(|(_, p)| p.length())
            .sum::<usize>()
    };
    let mut full = Pipe::new(&quinn(false), MessageMapping::Streams, Path::clean(DELAY), Seed(1));
    full.command(0, Command::Connect);
    full.run(Duration::from_secs(1));
    assert!(octets(&pipe) + 1000 < octets(&full), "{} of {}", octets(&pipe), octets(&full));
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(60) })]

    /// Early data arrive once and in order, whatever is lost, and the connection closes. A server that rejects them has a
    /// path without losses: RFC 9002 section 6.2.2.1 expects the client to probe when the server may send no more, but
    /// quinn-proto has no timer while only early data are unacknowledged.
    #[test]
    fn early_data_arrive_once_and_in_order(
        loss in 0.0..0.2,
        accepts: bool,
        seed: u64,
        lengths in prop::collection::vec((0u16..4, 1usize..6000), 1..6),
        closes_early: bool,
    ) {
        let loss = if accepts { loss } else { 0.0 };
        let path = Path { loss, repeat: loss / 2.0, jitter: Duration::from_millis(20), ..Path::clean(DELAY) };
        let mut pipe = connecting(accepts, path, seed);
        pipe.faults_until = ms(3000);
        for (number, (stream, length)) in lengths.iter().enumerate() {
            pipe.send(0, *stream, (0..*length).map(|at| (number * 31 + at * 7) as u8).collect());
        }
        if !closes_early {
            pipe.run(Duration::from_secs(5));
        }
        pipe.command(0, Command::Close);
        pipe.run(Duration::from_secs(30));
        pipe.command(1, Command::Close);
        pipe.run(Duration::from_secs(100));
        for stream in 0..4 {
            let own = lengths.iter().enumerate().filter(|(_, (own, _))| *own == stream);
            let expected: Vec<u8> =
                own.flat_map(|(number, (_, length))| (0..*length).map(move |at| (number * 31 + at * 7) as u8)).collect();
            prop_assert!(pipe.sides[1].stream(stream) == expected, "stream {stream}");
        }
        for side in &pipe.sides {
            let events: Vec<_> = side.events.iter().map(|(_, event)| event).filter(|event| **event != Event::Writable).collect();
            prop_assert_eq!(events, [&Event::Connected, &Event::PeerClosed, &Event::Closed]);
        }
    }
}
