//! Tests rules of Linux 2.6.16 that later kernels do not have.

use hol_base::Duration;
use hol_tcp::Config;

use crate::script::Script;

/// Linux 2.6.16 with exact clocks.
fn linux_2_6_16() -> Config {
    Config { clock_granularity: Duration::ZERO, ..Config::linux_2_6_16() }
}

#[test]
fn byte_counting_barely_grows_the_window_for_short_messages() {
    // Linux 2.6.16: net/ipv4/tcp_cong.c tcp_slow_start: a segment once 1460 octets are acknowledged, 23 messages of 64.
    let mut script = Script::connected(linux_2_6_16(), 20);
    (0..3).for_each(|_| assert_eq!(script.writes(64).len(), 1));
    let mut opened = Vec::new();
    for message in 1..=50 {
        script.at(20 + 20 * u64::from(message));
        script.acked(64 * message, &[]);
        while script.endpoint.cwnd() as usize > script.endpoint.info().unacked as usize {
            script.writes(64);
        }
        opened.push(script.endpoint.cwnd());
    }
    assert_eq!((opened[21], opened[22], opened[44], opened[45]), (3, 4, 4, 5));
}

#[test]
fn only_a_full_window_grows() {
    // Linux 2.6.16: net/ipv4/tcp_cong.c tcp_is_cwnd_limited: in_flight >= snd_cwnd, before the acknowledgment.
    for (out, opened) in [(3, 4), (2, 3)] {
        let mut script = Script::connected(linux_2_6_16(), 20);
        (0..out).for_each(|_| assert_eq!(script.writes(1460).len(), 1));
        script.at(40);
        script.acked(1460, &[]);
        assert_eq!(script.endpoint.cwnd(), opened, "{out} of 3 were out");
    }
}

#[test]
fn after_a_timeout_the_window_stays_at_one_segment() {
    // Linux 2.6.16: net/ipv4/tcp_input.c tcp_enter_loss, and line 2453: no octets are counted in the Loss state. Without byte counting
    // each acknowledgment opens the window.
    for (byte_counting, windows) in [(true, [1, 1, 1]), (false, [2, 3, 4])] {
        let config = Config { byte_counting, collapse_on_retransmit: false, ..linux_2_6_16() };
        let mut script = Script::connected(Config { initial_window: 10, ..config }, 20);
        script.writes(14_600);
        let (at, resent) = script.next_timer();
        assert_eq!(script.offsets(&resent), [0]);
        assert_eq!(script.endpoint.cwnd(), 1);
        let mut seen = Vec::new();
        for acknowledged in 1..=3 {
            script.at(at + 20 * u64::from(acknowledged));
            script.acked(1460 * acknowledged, &[]);
            seen.push(script.endpoint.cwnd());
        }
        assert_eq!(seen, windows, "byte counting: {byte_counting}");
    }
}

#[test]
fn rate_halving_reduces_cwnd_with_every_second_ack() {
    // Linux 2.6.16: net/ipv4/tcp_input.c tcp_cwnd_down: at most one more than are in flight; the first
    // acknowledgment starts the recovery. tcp_complete_cwr: at the end at most ssthresh.
    let mut script =
        Script::connected(Config { initial_window: 10, cwnd_moderation: 0, ..linux_2_6_16() }, 20);
    script.writes(14_600);
    script.at(40);
    script.acked(0, &[(1460, 2920)]);
    script.acked(0, &[(1460, 4380)]);
    assert_eq!((script.endpoint.cwnd(), script.endpoint.ssthresh() > 10), (10, true), "disorder");
    let mut windows = Vec::new();
    for reported in 3..=7 {
        let resent = script.acked(0, &[(1460, 1460 * (reported + 1))]);
        assert_eq!(script.offsets(&resent), if reported == 3 { vec![0] } else { vec![] });
        windows.push(script.endpoint.cwnd());
    }
    // In flight, with the retransmission: 7, 6, 5, 4, 3.
    assert_eq!((windows, script.endpoint.ssthresh()), (vec![7, 6, 6, 5, 4], 5));
    script.acked(14_600, &[]);
    assert_eq!(script.endpoint.cwnd(), 4, "not ssthresh");
}

#[test]
fn dubious_ack_limits_cwnd_to_flight_plus_three() {
    // Linux 2.6.16: net/ipv4/tcp_input.c tcp_moderate_cwnd, tcp_try_to_open.
    let config = Config { initial_window: 10, ..linux_2_6_16() };
    let mut script = Script::connected(config, 20);
    script.writes(3 * 1460);
    script.at(40);
    script.acked(0, &[(1460, 2920)]);
    assert_eq!(script.endpoint.cwnd(), 5, "two are in flight");
}

#[test]
fn retransmission_merges_at_most_collapse_limit_segments() {
    // Linux 2.6.16: net/ipv4/tcp_output.c tcp_retrans_try_collapse.
    for (collapse_limit, octets) in [(1, 200), (0, 400)] {
        let config = Config { initial_window: 4, collapse_limit, ..linux_2_6_16() };
        let mut script = Script::connected(config, 20);
        (0..4).for_each(|_| assert_eq!(script.writes(100).len(), 1));
        let (_, resent) = script.next_timer();
        assert_eq!(resent[0].payload.len(), octets);
    }
}

#[test]
fn fack_finds_two_adjacent_losses_one_report_sooner() {
    // Linux 2.6.16: net/ipv4/tcp_input.c tcp_time_to_recover, tcp_update_scoreboard: fackets_out > reordering.
    let mut script = Script::connected(Config { initial_window: 10, ..linux_2_6_16() }, 20);
    script.writes(14_600);
    script.at(40);
    assert_eq!(script.acked(0, &[(2920, 4380)]).len(), 0, "three segments from the front");
    let resent = script.acked(0, &[(2920, 5840)]);
    assert_eq!(script.offsets(&resent), [0]);
    let resent = script.acked(0, &[(2920, 7300)]);
    assert_eq!(script.offsets(&resent), [1460]);
}

#[test]
fn fack_finds_a_lost_retransmission_by_later_data() {
    // Linux 2.6.16: net/ipv4/tcp_input.c tcp_sacktag_write_queue, event C. With detection by count the sender waits for the timeout.
    for (recovery, expected) in
        [(hol_tcp::LossDetection::Fack, vec![0]), (hol_tcp::LossDetection::Sack, vec![])]
    {
        let config = Config { initial_window: 10, recovery, ..linux_2_6_16() };
        let mut script = Script::connected(config, 20);
        script.writes(14_600);
        script.at(40);
        let resent = script.acked(0, &[(1460, 5840)]);
        assert_eq!(script.offsets(&resent), [0]);
        script.at(45);
        script.acked(0, &[(1460, 7300)]);
        script.acked(0, &[(1460, 8760)]);
        assert_eq!(script.writes(1460).len(), 1, "one segment may follow");
        script.at(65);
        let resent = script.acked(0, &[(1460, 16_060)]);
        assert_eq!(script.offsets(&resent), expected, "{recovery:?}");
    }
}
