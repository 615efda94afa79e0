//! Tests RACK-TLP, RFC 8985, in SCTP.

use hol_base::Duration;
use hol_transport::Endpoint as _;
use hol_wire::sctp::Chunk;

use super::script::{Script, config};
use crate::{Config, Endpoint};

fn rack() -> Config {
    Config { rack: true, ..config() }
}

/// Returns a script that has sent messages of 100 octets at 1 ms intervals from 0 ms, after it measured a round trip of 100 ms.
fn spaced(count: u32) -> Script {
    let mut script = Script::established(rack());
    script.send(0, 100);
    script.run_to(100);
    script.sack(1, &[]);
    for number in 0..count {
        script.run_to(1000 + u64::from(number));
        script.send(0, 100);
    }
    script.take_data();
    script
}

fn statistics(script: &Script) -> [u64; 4] {
    let statistics = script.endpoint.statistics();
    [
        statistics.fast_retransmissions,
        statistics.tail_loss_probes,
        statistics.timeouts,
        statistics.congestion_events,
    ]
}

/// Section 6.2 step 5: within a quarter of the round trip a chunk may still arrive.
#[test]
fn chunk_is_lost_a_reordering_window_after_a_later_one_arrives() {
    let mut script = spaced(2);
    script.run_to(1101);
    script.sack(1, &[(3, 3)]);
    script.run_to(1124);
    assert_eq!(script.take_data(), []);
    script.run_to(1125);
    // It was sent at 1000 ms: 100 ms of round trip, and 25 ms.
    assert_eq!(script.take_data(), [(1125, vec![2])]);
    assert_eq!(statistics(&script), [1, 0, 0, 1]);
}

/// Section 6.2 step 4: three later chunks reach DupThresh, and no reordering was seen.
#[test]
fn three_later_chunks_mean_loss_without_known_reordering() {
    let mut script = spaced(5);
    script.run_to(1103);
    script.sack(1, &[(3, 5)]);
    assert_eq!(script.take_data(), [(1103, vec![2])]);
}

/// Section 6.2 step 3: a path that has reordered always has a reordering window.
#[test]
fn path_with_reordering_keeps_its_reordering_window() {
    let mut script = spaced(6);
    script.run_to(1101);
    script.sack(1, &[(3, 3)]);
    script.run_to(1102);
    script.sack(3, &[]);
    script.run_to(1106);
    script.sack(3, &[(5, 7)]);
    script.run_to(1126);
    assert_eq!(script.take_data(), []);
    script.run_to(1200);
    // Chunk 4 was sent at 1002 ms; RACK.rtt is 101 ms.
    assert_eq!(script.take_data()[0].1, [4]);
}

/// Section 6.2 step 4: RACK.reo_wnd_mult, once per round trip; it lasts 16 recoveries.
#[test]
fn the_reordering_window_grows_with_chunks_that_came_twice() {
    let mut script = spaced(2);
    let mut sack = script.make_sack(1, &[], 100_000);
    let Chunk::Sack(twice) = &mut sack else { unreachable!() };
    twice.duplicates.push(script.first);
    script.run_to(1101);
    script.inject([sack]);
    script.sack(1, &[(3, 3)]);
    script.run_to(1149);
    assert_eq!(script.take_data(), [], "two quarters of 100 ms");
    script.run_to(1150);
    assert_eq!(script.take_data(), [(1150, vec![2])]);
}

/// Section 6.2 step 2: an acknowledgment within less than the minimum round trip is for an earlier copy, which does not show the order.
#[test]
fn an_acknowledgment_of_an_earlier_copy_does_not_count() {
    let mut script = spaced(3);
    script.run_to(1103);
    script.sack(1, &[(4, 4)]);
    script.run_to(1120);
    script.send(0, 100);
    script.run_to(1130);
    assert_eq!(script.take_data(), [(1120, vec![5]), (1127, vec![2, 3])]);
    // Chunk 2 was retransmitted at 1127 ms, and is acknowledged 3 ms later: chunk 5 has not been overtaken.
    script.sack(2, &[(4, 4)]);
    script.run_to(1200);
    assert_eq!(script.take_data(), []);
}

/// A lost retransmission is detected by data sent after it; with miss indications it would wait for T3-rtx.
#[test]
fn a_lost_retransmission_is_found() {
    let mut script = spaced(5);
    script.run_to(1103);
    script.sack(1, &[(3, 5)]);
    assert_eq!(script.take_data(), [(1103, vec![2])]);
    script.run_to(1110);
    script.send(0, 100);
    assert_eq!(script.take_data(), [(1110, vec![7])]);
    script.run_to(1211);
    script.sack(1, &[(3, 7)]);
    assert_eq!(script.take_data(), [(1211, vec![2])]);
    assert_eq!(statistics(&script)[2], 0);
}

/// Section 7.2: two round trips, and the peer's SACK delay for a single packet; section 7.3: the last chunk again.
#[test]
fn a_probe_repeats_the_last_chunk_long_before_t3_rtx() {
    let mut script = spaced(3);
    script.run_to(1600);
    // 1002 + 2 * 100 + 200 ms, because all three would fit into one packet.
    assert_eq!(script.take_data(), [(1402, vec![4])]);
    assert_eq!(statistics(&script), [1, 1, 0, 0]);
    // The chunks missing before it are lost at once: they were sent more than a round trip earlier.
    script.sack(1, &[(4, 4)]);
    assert_eq!(script.take_data(), [(1600, vec![2, 3])]);
}

/// Section 7.3: new data if available and the peer has room, even beyond cwnd.
#[test]
fn probe_sends_new_data_if_available() {
    let mut script = spaced(0);
    for _ in 0..10 {
        script.send(0, 1000);
    }
    let sent = script.take_data().len() as u32;
    assert!(sent < 10, "cwnd is full");
    script.run_to(1200);
    assert_eq!(script.take_data(), [(300, vec![sent + 2])], "and no other before that one is acknowledged");
}

/// Section 7.4.2: either the peer reports a duplicate, or the original was lost and the probe has repaired it.
#[test]
fn probe_that_repairs_a_loss_reduces_the_window() {
    let probed = |twice: bool| {
        let mut script = spaced(1);
        script.run_to(1450);
        assert_eq!(script.take_data(), [(1400, vec![2])]);
        let mut sack = script.make_sack(2, &[], 100_000);
        let Chunk::Sack(first) = &mut sack else { unreachable!() };
        if twice {
            first.duplicates.push(script.first + 1);
        }
        script.inject([sack]);
        script.send(0, 100);
        script.run_to(1500);
        script.sack(3, &[]);
        statistics(&script)[3]
    };
    assert_eq!((probed(true), probed(false)), (0, 1));
}

/// Section 7.2: T3-rtx counts from the probe, and continues if no probe helps.
#[test]
fn t3_rtx_expires_an_rto_after_the_probe() {
    let mut script = spaced(1);
    script.run_to(2400);
    assert_eq!(script.take_data(), [(1400, vec![2]), (2400, vec![2])]);
    assert_eq!(statistics(&script), [1, 1, 1, 1]);
}

/// Section 6.2: after the first packet, cwnd limits retransmissions.
#[test]
fn cwnd_limits_retransmissions_after_the_first_packet() {
    let mut script = Script::established(rack());
    for _ in 0..30 {
        script.send(0, 1200);
    }
    let flight = script.take_data().len() as u32;
    script.run_to(100);
    for acknowledged in 1..=flight {
        script.sack(acknowledged, &[]);
    }
    let sent = 1 + script.take_data().iter().flat_map(|(_, chunks)| chunks.clone()).max().unwrap();
    script.run_to(200);
    let cwnd = |script: &Script| script.endpoint.paths()[0].cwnd();
    // All but the last three chunks are lost.
    script.sack(flight, &[(sent - 3, sent - 1)]);
    let again = script.take_data().len() as u64;
    assert!(again > 1 && script.flight_size() <= cwnd(&script) + 1200, "{again}");
    assert_eq!(statistics(&script)[3], 1);
}

/// Section 7.2: PTO is at most the rest of RTO. Before the first round trip is known, both are 1 s.
#[test]
fn probe_replaces_t3_rtx_before_the_first_rtt_sample() {
    let mut script = Script::established(rack());
    script.send(0, 100);
    script.run_to(1000);
    assert_eq!(statistics(&script), [1, 1, 0, 0]);
}

/// Section 7.2: only new data and an advancing cumulative acknowledgment restart the timer.
#[test]
fn sacks_without_progress_do_not_postpone_a_probe() {
    let mut script = spaced(1);
    for at in [1100, 1200, 1300] {
        script.run_to(at);
        script.sack(1, &[]);
    }
    script.run_to(1500);
    assert_eq!(script.take_data(), [(1400, vec![2])]);
}

/// Section 7.3: on a path that has become slower, Karn's algorithm prevents the samples that would end unnecessary probes.
#[test]
fn second_probe_needs_an_rtt_sample_in_between() {
    let mut script = spaced(1);
    script.run_to(1450);
    let mut sack = script.make_sack(2, &[], 100_000);
    let Chunk::Sack(twice) = &mut sack else { unreachable!() };
    twice.duplicates.push(script.first + 1);
    script.inject([sack]);
    script.send(0, 100);
    script.run_to(2300);
    assert_eq!(script.take_data(), [(1400, vec![2]), (1450, vec![3])], "no probe at 1850 ms");
    script.sack(3, &[]);
    script.send(0, 100);
    script.run_to(5000);
    assert_eq!(statistics(&script)[1], 2, "a round trip was measured");
}

/// Section 7.3: Nagle's algorithm waits for an acknowledgment, which the probe should trigger.
#[test]
fn probe_sends_new_data_held_back_by_nagle() {
    let mut script = Script::established(Config { nagle: true, ..rack() });
    script.send(0, 100);
    script.run_to(100);
    script.sack(1, &[]);
    script.run_to(1000);
    script.send(0, 100);
    script.run_to(1010);
    script.send(0, 100);
    script.take_data();
    script.run_to(1500);
    assert_eq!(script.take_data(), [(1400, vec![3])]);
}

/// Section 6.3: chunks sent within the last round trip are not lost when T3-rtx expires; the first packet is always retransmitted.
#[test]
fn t3_rtx_spares_recently_sent_chunks() {
    let mut script = spaced(1);
    script.run_to(2350);
    script.send(0, 100);
    script.run_to(2410);
    assert_eq!(script.take_data(), [(1400, vec![2]), (2350, vec![3]), (2400, vec![2])]);
    script.run_to(2450);
    script.sack(1, &[(3, 3)]);
    script.run_to(2500);
    script.sack(3, &[]);
    assert_eq!(statistics(&script)[2], 1);
    assert!(script.take_data().is_empty());
}

/// Section 9.3: one loss event reduces the window once, although T3-rtx has spared one of its chunks.
#[test]
fn chunk_spared_by_t3_rtx_reduces_the_window_only_once() {
    let mut script = spaced(1);
    script.run_to(2350);
    script.send(0, 100);
    script.send(0, 100);
    script.run_to(2400);
    assert_eq!(statistics(&script)[3], 1);
    // The first chunk of both was also lost.
    script.run_to(2500);
    script.sack(2, &[(4, 4)]);
    script.run_to(2700);
    assert!(script.take_data().iter().any(|(at, chunks)| *at >= 2500 && chunks.contains(&3)));
    assert_eq!(statistics(&script)[3], 1);
}

/// Section 6.2 step 1: only chunks sent once count for RACK.min_RTT; it is unknown which copy was acknowledged.
#[test]
fn retransmitted_chunk_gives_no_minimum_rtt_sample() {
    let mut script = Script::established(rack());
    script.send(0, 100);
    script.run_to(1100);
    // The probe at 1000 ms is the second copy; the first took 1.1 s.
    script.sack(1, &[]);
    for at in [2000, 2001] {
        script.run_to(at);
        script.send(0, 100);
    }
    script.take_data();
    script.run_to(2601);
    script.sack(1, &[(3, 3)]);
    script.run_to(2800);
    assert_eq!(script.take_data(), [(2750, vec![2])], "600 ms of round trip, and a quarter");
}

#[test]
fn the_timer_of_a_path_is_off_without_rack() {
    let mut script = Script::established(config());
    script.send(0, 100);
    let t3_rtx = script.deadline;
    assert_eq!(
        t3_rtx,
        script.endpoint.paths.list[0].t3_rtx.into_iter().chain(next_heartbeat(&script.endpoint)).min()
    );
    assert!(t3_rtx.is_some_and(|at| at >= script.now + Duration::from_millis(500)));
}

fn next_heartbeat(endpoint: &Endpoint) -> Option<hol_base::Time> {
    endpoint.paths.list[0].heartbeat_due
}
