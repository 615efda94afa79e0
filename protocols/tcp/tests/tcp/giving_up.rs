//! Tests when a connection whose peer does not answer fails.

use hol_base::{Duration, Seed, Time};
use hol_tcp::{Config, Endpoint, State};
use hol_transport::{Command, Endpoint as _, Event, Failure, Input};
use hol_wire::tcp::{Flags, Segment, SeqNum};

use crate::script::{LOCAL, PEER, PEER_START, Script, linux, rfc};

/// Returns the time from the last segment to the failure of an endpoint whose peer does not answer, in ms.
fn gives_up_after(mut script: Script) -> u64 {
    let begin = script.now.as_millis();
    while script.endpoint.state() != State::Closed {
        script.next_timer();
    }
    assert_eq!(script.events.last(), Some(&Event::Failed { reason: Failure::TimedOut }));
    script.now.as_millis() - begin
}

/// RFC 1122 section 4.2.3.5 counts retransmissions up to R2. Linux: net/ipv4/tcp_timer.c
/// retransmits_timed_out uses the time of that many timeouts, the first of TCP_RTO_MIN, counted from the
/// first retransmission, which is sent here after 300 ms.
#[test]
fn retries_limit_the_count_or_the_time_of_retransmissions() {
    let after = |config: Config| {
        let mut script = Script::connected(config, 100);
        assert_eq!(script.writes(100).len(), 1);
        gives_up_after(script)
    };
    let config = Config { tlp: false, ..linux() };
    // 3 retries correspond to 200 ms · 15 = 3 s: 300 ms · (1 + 2 + 4 + 8) are 4.5 s, of which 0.3 s do not count.
    assert_eq!(after(Config { max_retries: 3, ..config }), 4500);
    assert_eq!(after(Config { max_retries: 3, max_retries_base: Duration::ZERO, ..config }), 4500);
    // 4 retries correspond to 6.2 s, and 9.3 s is the first timeout after that.
    assert_eq!(after(Config { max_retries: 4, ..config }), 9300);
    // 200 ms · 1023 and 6 · 120 s: 924.6 s.
    let timeouts = (0..).map(|count| (300u64 << count).min(120_000));
    let expiries = timeouts.scan(0, |sum, timeout| {
        *sum += timeout;
        Some(*sum)
    });
    assert_eq!(Some(after(config)), expiries.into_iter().find(|at| at - 300 >= 924_600));
}

/// Linux: tcp_write_timeout and tcp_clamp_rto_to_user_timeout; the time counts from the first retransmission.
#[test]
fn a_user_timeout_ends_the_connection_whatever_the_retries() {
    let after = |user_timeout: u64| {
        let user_timeout = Duration::from_millis(user_timeout);
        let mut script = Script::connected(Config { user_timeout, tlp: false, ..linux() }, 100);
        assert_eq!(script.writes(100).len(), 1);
        gives_up_after(script)
    };
    assert_eq!([after(1), after(1000), after(10_000)], [301, 1300, 10_300]);
}

/// Linux: tcp_write_timeout uses syn_retries and syn_linear_timeouts, or the time of the former; a user
/// timeout counts from the first SYN (tcp_connect sets retrans_stamp).
#[test]
fn syn_fails_after_its_retries_or_the_user_timeout() {
    let after = |config: Config| {
        let endpoint = Endpoint::connect(config, LOCAL, PEER, Seed(1).rng());
        let (now, start) = (Time::ZERO, SeqNum::default());
        let mut script = Script { now, endpoint, start, events: Vec::new(), deadline: None };
        script.endpoint.handle(now, Input::Command(Command::Connect));
        assert_eq!(script.sent().len(), 1);
        gives_up_after(script)
    };
    // Five timeouts of 1 s, then 2 s, 4 s and so on to 64 s.
    assert_eq!(after(linux()), 131_000);
    // One retry corresponds to 3 s, which are shorter than the four linear ones.
    assert_eq!(after(Config { syn_retries: 1, ..linux() }), 3000);
    assert_eq!(after(Config { user_timeout: Duration::from_millis(2500), ..linux() }), 2500);
    assert_eq!(after(Config { syn_retries: 2, ..rfc() }), 7000);
}

/// Linux: tcp_probe_timer and tcp_clamp_probe0_to_user_timeout; the time counts from the first probe.
#[test]
fn a_user_timeout_ends_the_probing_of_a_closed_window() {
    let user_timeout = Duration::from_secs(5);
    let mut script = Script::connected(Config { user_timeout, tlp: false, ..linux() }, 100);
    let closed = Segment { window: 0, ..script.peer_segment(Flags::ACK, PEER_START, 0, 0) };
    script.arrives(closed);
    assert!(script.writes(100).is_empty());
    let mut probes = Vec::new();
    while script.endpoint.state() != State::Closed {
        probes.push(script.next_timer().0);
        let answer = Segment { window: 0, ..script.peer_segment(Flags::ACK, PEER_START, 0, 0) };
        script.arrives(answer);
    }
    let (first, last) = (probes[0], probes[probes.len() - 1]);
    assert_eq!(last - first, 5000, "{probes:?}");
    assert_eq!(script.events.last(), Some(&Event::Failed { reason: Failure::WindowClosed }));
}

/// RFC 9293 section 3.8.4, MUST-26 and later. Linux: net/ipv4/tcp_timer.c tcp_keepalive_timer.
#[test]
fn keepalive_probes_until_answered_or_exhausted() {
    let config = Config {
        keepalive: Duration::from_secs(10),
        keepalive_interval: Duration::from_secs(5),
        keepalive_probes: 2,
        ..linux()
    };
    let mut script = Script::connected(config.clone(), 100);
    let (at, probes) = script.next_timer();
    assert_eq!((at, script.offsets(&probes)), (10_100, vec![u32::MAX]), "one octet before what comes next");
    assert_eq!((probes[0].flags, probes[0].payload.len()), (Flags::ACK, 0));
    script.at(10_200);
    script.acked(0, &[]);
    assert_eq!(script.next_timer().0, 15_100, "it was answered: nothing is due yet");
    assert_eq!(script.next_timer(), (20_200, probes));
    assert_eq!((script.next_timer().0, script.next_timer().0), (25_200, 30_200));
    assert_eq!(script.events.last(), Some(&Event::Failed { reason: Failure::TimedOut }));
    // A user timeout replaces the number of probes.
    let user_timeout = Duration::from_secs(12);
    let script = Script::connected(Config { user_timeout, ..config }, 100);
    assert_eq!(gives_up_after(script), 15_000);
    // The retransmission timer covers data in flight.
    let mut script = Script::connected(Config { max_retries: 20, tlp: false, ..config }, 100);
    script.writes(100);
    let mut sent = 0;
    while script.now.as_millis() < 40_000 {
        sent += script.next_timer().1.iter().filter(|segment| segment.payload.is_empty()).count();
    }
    assert_eq!(sent, 0);
}
