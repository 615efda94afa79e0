//! Tests that each stream arrives once and in order on any path, and that the connection closes.

use std::collections::BTreeMap;

use crate::pipe::{Path, Pipe, config};
use hol_base::{Digest, Duration, Seed};
use hol_quic::{Config, MessageMapping};
use hol_transport::{Command, Endpoint as _, Event};
use proptest::prelude::*;

/// Messages of both sides: pause before, side, stream, octets.
type Writes = Vec<(u64, usize, u16, usize)>;

fn writes() -> impl Strategy<Value = Writes> {
    let length = prop_oneof![1usize..300, 1000usize..9000];
    prop::collection::vec((0u64..400, 0usize..2, 0u16..4, length), 1..30)
}

fn path() -> impl Strategy<Value = Path> {
    let jitter = prop_oneof![Just(0u64), 1u64..40];
    let chance = || prop_oneof![Just(0.0), 0.0..0.2];
    (1u64..60, jitter, chance(), chance()).prop_map(|(delay, jitter, loss, repeat)| Path {
        delay: Duration::from_millis(delay),
        jitter: Duration::from_millis(jitter),
        loss,
        repeat,
    })
}

/// Messages with their streams, by the side that sent them.
type Sent = [Vec<(u16, Vec<u8>)>; 2];

/// Returns the content of a side's `number`-th message.
fn octets(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number * 31 + at * 7) as u8).collect()
}

/// Sends the messages and closes both sides; returns the pipe, and the messages that each side sent.
fn transfer(
    config: &Config,
    mapping: MessageMapping,
    path: Path,
    seed: u64,
    writes: &Writes,
) -> (Pipe, Sent) {
    let mut pipe = Pipe::connected(config, mapping, path, Seed(seed));
    pipe.faults_until = pipe.now + Duration::from_secs(40);
    let mut sent = [Vec::new(), Vec::new()];
    for (pause, side, stream, length) in writes {
        pipe.run(Duration::from_millis(*pause));
        if pipe.sides[*side].endpoint.can_send(*length) {
            let message = octets(sent[*side].len(), *length);
            pipe.send(*side, *stream, message.clone());
            sent[*side].push((*stream, message));
        }
    }
    // Datagrams (RFC 9221) are lost if the end of the connection overtakes them.
    if mapping == MessageMapping::Datagrams {
        pipe.run(path.delay + path.jitter);
    }
    pipe.command(0, Command::Close);
    pipe.command(1, Command::Close);
    pipe.run(Duration::from_secs(200));
    (pipe, sent)
}

fn by_stream(messages: &[(u16, Vec<u8>)]) -> BTreeMap<u16, Vec<u8>> {
    let mut streams = BTreeMap::<u16, Vec<u8>>::new();
    messages.iter().for_each(|(stream, octets)| streams.entry(*stream).or_default().extend(octets));
    streams
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(cases()) })]

    /// RFC 9000 section 2.2: octets of a stream are delivered in order, each once.
    #[test]
    fn each_stream_arrives_once_in_order_and_the_connection_closes(
        stack in prop_oneof![Just("quinn-0.11"), Just("rfc")],
        path in path(),
        seed: u64,
        writes in writes(),
        threshold in 1u32..12,
    ) {
        let config = config(stack, &format!("streams = 4\nack_threshold = {threshold}"));
        let (pipe, sent) = transfer(&config, MessageMapping::Streams, path, seed, &writes);
        for (side, sent) in [(0, &sent[1]), (1, &sent[0])] {
            for (stream, octets) in by_stream(sent) {
                prop_assert!(pipe.sides[side].stream(stream) == octets, "side {side}, stream {stream}");
            }
            let events: Vec<_> = pipe.sides[side].events.iter().map(|(_, event)| event).collect();
            let end: Vec<_> = events.into_iter().filter(|event| **event != Event::Writable).collect();
            prop_assert_eq!(end, [&Event::Connected, &Event::PeerClosed, &Event::Closed]);
        }
    }

    /// Each message arrives whole and once, in any order.
    #[test]
    fn each_message_arrives_once_on_a_stream_of_its_own(
        path in path(),
        seed: u64,
        writes in writes(),
        max_streams in 2u32..8,
    ) {
        let config = config("quinn-0.11", &format!("max_streams = {max_streams}"));
        let (pipe, sent) = transfer(&config, MessageMapping::PerMessage, path, seed, &writes);
        for (side, sent) in [(0, &sent[1]), (1, &sent[0])] {
            let mut sent: Vec<_> = sent.iter().map(|(_, octets)| octets.clone()).collect();
            let mut came: Vec<_> = pipe.sides[side].received.iter().map(|(_, data)| data.payload.to_vec()).collect();
            sent.sort();
            came.sort();
            prop_assert!(came == sent, "side {side}: {} of {}", came.len(), sent.len());
            prop_assert!(pipe.sides[side].has(&Event::Closed));
        }
    }

    /// RFC 9221 section 5: DATAGRAM frames are not retransmitted; none arrives twice.
    #[test]
    fn a_datagram_arrives_at_most_once(path in path(), seed: u64, writes in writes()) {
        let writes: Writes = writes.into_iter().map(|(pause, side, stream, length)| (pause, side, stream, length.min(1000))).collect();
        let config = config("quinn-0.11", "");
        let (pipe, sent) = transfer(&config, MessageMapping::Datagrams, path, seed, &writes);
        for (side, sent) in [(0, &sent[1]), (1, &sent[0])] {
            let mut left: Vec<_> = sent.iter().map(|(_, octets)| octets.clone()).collect();
            for (_, data) in &pipe.sides[side].received {
                let at = left.iter().position(|octets| *octets == data.payload);
                prop_assert!(at.is_some(), "side {side}: {} octets came that were not sent", data.payload.len());
                left.remove(at.unwrap());
            }
            let is_perfect = path.loss == 0.0;
            prop_assert!(left.is_empty() || !is_perfect, "side {side}: {} were lost", left.len());
        }
    }

    /// Same seed, same packets at the same times.
    #[test]
    fn the_same_seed_gives_the_same_packets(path in path(), seed: u64, writes in writes()) {
        let config = config("quinn-0.11", "streams = 4");
        let run = || -> Digest { transfer(&config, MessageMapping::Streams, path, seed, &writes).0.digester.finish() };
        prop_assert_eq!(run(), run());
    }

    /// The components of the delay are not negative: no octet is sent before it is first sent, or arrives before it is sent.
    #[test]
    fn delivery_times_are_in_order(path in path(), seed: u64, writes in writes()) {
        let (pipe, _) = transfer(&config("quinn-0.11", "streams = 4"), MessageMapping::Streams, path, seed, &writes);
        for (delivered, data) in pipe.sides.iter().flat_map(|side| &side.received) {
            let delivery_times = data.delivery_times;
            prop_assert!(delivery_times.first_sent <= delivery_times.sent, "{delivery_times:?}");
            prop_assert!(delivery_times.sent + path.delay <= delivery_times.arrived, "{delivery_times:?}");
            prop_assert!(delivery_times.arrived <= *delivered, "{delivery_times:?} at {delivered}");
        }
    }
}
