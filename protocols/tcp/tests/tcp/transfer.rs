//! Tests that the byte stream arrives once and in order on any path, and that the connection closes.

use crate::endpoint::{message, stack};
use crate::pipe::{Path, Pipe};
use hol_base::{ByteCount, Digest, Digester, Duration, Seed, Time};
use hol_tcp::Algorithm;
use hol_transport::{Command, Endpoint as _, Event};
use proptest::prelude::*;

const STACKS: [&str; 3] = ["linux-6.12", "linux-2.6.16", "rfc"];

/// Writes of both sides: time, side and octets.
type Writes = Vec<(u64, usize, usize)>;

fn writes() -> impl Strategy<Value = Writes> {
    prop::collection::vec((0u64..400, 0usize..2, prop_oneof![1usize..300, 1000usize..9000]), 1..30)
}

/// Runs the writes, closes both sides, and returns the pipe with the digest of what happened.
fn transfer(config: &hol_tcp::Config, path: Path, seed: u64, writes: &Writes) -> (Pipe, Digest) {
    let mut pipe = Pipe::new(config, path, Seed(seed));
    pipe.faults_until = Time::from_millis(60_000);
    pipe.command(0, Command::Connect);
    let mut sent = [Vec::new(), Vec::new()];
    while pipe.sides.iter().any(|side| !side.saw(&Event::Connected)) {
        pipe.run(Duration::from_millis(100));
        assert!(pipe.now < Time::from_millis(200_000), "the handshake hangs: {:?}", pipe.sides);
    }
    for (pause, side, length) in writes {
        pipe.run(Duration::from_millis(*pause));
        if pipe.sides[*side].endpoint.can_send(*length) {
            let octets: Vec<u8> = (0..*length).map(|i| (i * 7 + sent[*side].len()) as u8).collect();
            sent[*side].extend_from_slice(&octets);
            pipe.command(*side, message(octets));
        }
    }
    pipe.command(0, Command::Close);
    pipe.command(1, Command::Close);
    pipe.run(Duration::from_secs(1200));
    let mut digester = Digester::new();
    for (side, sent) in [(0, &sent[1]), (1, &sent[0])] {
        assert!(pipe.sides[side].received == **sent, "side {side} did not get the stream");
        let endpoint = &pipe.sides[side].endpoint;
        assert!(endpoint.is_closed(), "side {side} is in {}", endpoint.state_name());
        let statistics = endpoint.statistics();
        digester.add_all([
            statistics.packets_sent,
            statistics.packets_received,
            statistics.fast_retransmissions,
            statistics.timeouts,
        ]);
    }
    (pipe, digester.finish())
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100),
    ) })]

    #[test]
    fn the_stream_arrives_once_in_order_and_closes(
        stack_index in 0usize..3,
        seed in any::<u64>(),
        delay in 1u64..60,
        jitter in prop_oneof![Just(0u64), 1u64..40],
        loss in prop_oneof![Just(0.0), 0.0..0.2],
        repeat in prop_oneof![Just(0.0), 0.0..0.2],
        sack in any::<bool>(),
        timestamps in any::<bool>(),
        bytes in any::<bool>(),
        writes in writes(),
    ) {
        let mut config = stack(STACKS[stack_index]);
        config.sack = sack;
        config.timestamps = timestamps;
        if bytes {
            config.congestion_unit = hol_tcp::CongestionUnit::Bytes;
        }
        let path = Path {
            delay: Duration::from_millis(delay),
            jitter: Duration::from_millis(jitter),
            loss,
            repeat,
        };
        let (_, first) = transfer(&config, path, seed, &writes);
        let (_, second) = transfer(&config, path, seed, &writes);
        prop_assert_eq!(first, second, "the same seed gives the same run");
    }
}

#[test]
fn a_clean_path_needs_no_retransmission() {
    for name in STACKS {
        let path = Path { delay: Duration::from_millis(20), jitter: Duration::ZERO, loss: 0.0, repeat: 0.0 };
        let writes = vec![(5, 0, 200_000), (5, 1, 64), (100, 0, 64), (700, 1, 20_000)];
        let (pipe, _) = transfer(&stack(name), path, 1, &writes);
        for side in &pipe.sides {
            let statistics = side.endpoint.statistics();
            let resent = statistics.fast_retransmissions + statistics.timeout_retransmissions;
            assert_eq!((resent, statistics.duplicates_received), (0, 0), "{name}");
        }
    }
}

#[test]
fn bulk_data_fills_the_path_despite_loss() {
    for name in STACKS {
        let path = Path { delay: Duration::from_millis(10), jitter: Duration::ZERO, loss: 0.01, repeat: 0.0 };
        let mut pipe = Pipe::new(&stack(name), path, Seed(5));
        pipe.connect();
        let start = pipe.now;
        pipe.command(0, message(vec![7; 1_000_000]));
        while pipe.sides[1].received.len() < 1_000_000 {
            pipe.run(Duration::from_millis(10));
            assert!(pipe.now < start + Duration::from_secs(60), "{name}: too slow");
        }
        // The square root law (Mathis 1997): 1448 / 20 ms * 1.22 / sqrt(1 %) is 0.88 Mbyte/s on average. It starts faster: slow start alone takes seven round trips.
        let seconds = pipe.now.since(start).as_secs_f64();
        assert!((0.14..6.0).contains(&seconds), "{name}: {seconds} s");
    }
}

/// Returns the mean number of segments per round trip of Reno with a share `loss` of them lost.
fn reno_window(loss: f64, seed: u64) -> f64 {
    const OCTETS: usize = 30_000_000;
    let mut config = stack("linux-6.12");
    config.congestion = Algorithm::Reno;
    (config.send_buffer, config.receive_buffer) = (ByteCount(2 * OCTETS as u64), ByteCount(4 << 20));
    let path = Path { delay: Duration::from_millis(10), jitter: Duration::ZERO, loss, repeat: 0.0 };
    let mut pipe = Pipe::new(&config, path, Seed(seed));
    pipe.connect();
    pipe.command(0, message(vec![7; OCTETS]));
    // The first slow start overshoots far; only the time after it counts.
    let mut marks = Vec::new();
    for mark in [OCTETS / 3, OCTETS] {
        while pipe.sides[1].received.len() < mark {
            pipe.run(Duration::from_millis(20));
            assert!(pipe.now < Time::from_millis(600_000), "stuck at {loss}");
        }
        marks.push((pipe.now, pipe.sides[1].received.len()));
    }
    let [(start, before), (end, after)] = marks[..] else { unreachable!("two marks") };
    (after - before) as f64 / 1448.0 / (end.since(start).as_secs_f64() / 0.02)
}

#[test]
fn reno_follows_the_square_root_law() {
    // Mathis et al. 1997: the mean window is C / sqrt(p), C between 0.87 (delayed acknowledgments) and 1.22; the law ignores timeouts, so the slope is a
    // little steeper. Linux exceeds it, because its receiver announces a growing window with every segment, so
    // acknowledgments are not delayed.
    let losses = [0.002, 0.008];
    let windows = losses.map(|loss| (0..8).map(|seed| reno_window(loss, seed)).sum::<f64>() / 8.0);
    let exponent = (windows[1] / windows[0]).ln() / (losses[1] / losses[0]).ln();
    assert!((exponent + 0.5).abs() < 0.1, "{windows:?}: p to the power of {exponent:.3}");
    for (window, loss) in windows.into_iter().zip(losses) {
        let constant = window * loss.sqrt();
        assert!((0.87..=1.22 * 1.15).contains(&constant), "C is {constant:.2} at {loss}");
    }
}
