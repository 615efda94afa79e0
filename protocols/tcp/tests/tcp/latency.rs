//! Tests the duration of a transaction over a lossy path, by stack.

use crate::endpoint::{message, stack};
use crate::pipe::{Path, Pipe};
use hol_base::{Duration, Seed};
use hol_transport::Endpoint as _;

/// Returns the mean transaction time in ms of `count` echoes of 64 octets, one every `period`.
fn mean_ms(name: &str, one_way_ms: u64, loss: f64, period_ms: u64, count: u64) -> (f64, Pipe) {
    let mut config = stack(name);
    config.nagle = hol_tcp::Nagle::Off;
    let path =
        Path { delay: Duration::from_millis(one_way_ms), jitter: Duration::ZERO, loss: 0.0, repeat: 0.0 };
    let mut pipe = Pipe::new(&config, path, Seed(11));
    pipe.connect();
    pipe.set_loss(loss);
    let mut written = Vec::new();
    let (mut echoed, mut total) = (0, 0.0);
    let mut done = 0;
    let mut next = pipe.now;
    while done < count as usize {
        if written.len() < count as usize && pipe.now >= next {
            pipe.command(0, message(vec![1; 64]));
            written.push(pipe.now);
            next += Duration::from_micros(period_ms * 1000 + 13);
        }
        let last = written.len() == count as usize;
        let end = if last { pipe.now + Duration::from_secs(60) } else { next };
        pipe.step(end);
        let complete = pipe.sides[1].received.len() / 64 * 64;
        if complete > echoed {
            pipe.command(1, message(vec![2; complete - echoed]));
            echoed = complete;
        }
        while done < pipe.sides[0].received.len() / 64 {
            total += pipe.now.since(written[done]).as_secs_f64() * 1e3;
            done += 1;
        }
    }
    (total / count as f64, pipe)
}

#[test]
fn without_loss_a_transaction_takes_a_round_trip_and_two_reads() {
    for name in ["linux-6.12", "linux-2.6.16", "rfc"] {
        let (mean, pipe) = mean_ms(name, 10, 0.0, 10, 500);
        let expected = 20.0 + 2e3 * stack(name).wakeup.as_secs_f64();
        assert!((mean - expected).abs() < 1e-6, "{name}: {mean} ms");
        assert_eq!(pipe.sides[0].endpoint.statistics().timeouts, 0, "{name}");
    }
}

#[test]
fn sparse_transactions_pay_a_timeout_for_a_loss() {
    // One segment is in flight: the probe and RTO both follow 220 ms to 228 ms later; E[T] = RTT + 2 RTO p / (1 - 2p).
    let (mean, _) = mean_ms("linux-6.12", 10, 0.01, 1000, 20_000);
    assert!((24.2..25.2).contains(&mean), "{mean} ms");
}

#[test]
fn time_based_loss_detection_is_faster_than_counting() {
    // RFC 8985 section 1: at 100/s a later segment or a probe reveals a loss within about a round trip.
    let (rack, _) = mean_ms("linux-6.12", 10, 0.01, 10, 20_000);
    let (count, _) = mean_ms("linux-2.6.16", 10, 0.01, 10, 20_000);
    assert!((20.9..22.5).contains(&rack), "{rack} ms");
    assert!((26.8..36.2).contains(&count), "{count} ms");
}

#[test]
fn byte_counting_and_rate_halving_delay_short_messages() {
    // Linux 2.6.16, by an independent simulator of its sources: 64.4 ± 2.5 ms at 2.5 % loss; without byte counting 40.8 ms. See
    // stacks/linux-2.6.16.toml.
    let (mean, _) = mean_ms("linux-2.6.16", 10, 0.025, 10, 40_000);
    assert!((64.4 * 0.85..64.4 * 1.15).contains(&mean), "{mean} ms");
    let (uncounted, _) = mean_ms("linux-2.6.10", 10, 0.025, 10, 40_000);
    assert!((40.8 * 0.85..40.8 * 1.15).contains(&uncounted), "{uncounted} ms");
}
