//! Tests single rules of BBR. draft-cardwell-iccrg-bbr-congestion-control-00, and Linux 6.12's tcp_bbr.c.

use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(40);
const NOW: Time = Time::from_millis(1000);

/// Returns a new connection with an initial window of ten segments of 1000 octets. The unit of the window is a
/// segment (`quantum` 1) or an octet.
fn bbr(quantum: u32) -> Bbr {
    let mut bbr = Bbr::new(quantum);
    let rtt = Some(ROUND_TRIP);
    let beginning =
        ConnectionStart { now: NOW, min_rtt: rtt, smoothed_rtt: rtt, segment: 1000, seed: Seed(1) };
    bbr.begin(beginning, 10 * quantum);
    bbr
}

/// Returns a connection in ProbeBW that knows the bandwidth of a path of 1000 segments a second, which 40 segments
/// in flight fill.
fn cruising(quantum: u32) -> Bbr {
    let mut bbr = bbr(quantum);
    bbr.bandwidth.add(BANDWIDTH_ROUNDS, 0, Bandwidth::of(40 * quantum, ROUND_TRIP));
    bbr.full.reached = true;
    (bbr.mode, bbr.phase) = (Mode::ProbeBandwidth, 2);
    bbr.set_gains();
    bbr.set_pacing_rate_with_gain(bbr.estimate(), GAIN_ONE, None);
    bbr
}

/// Returns the acknowledgment of one segment, after which `in_flight` segments are in flight.
fn ack(in_flight: u32) -> AckSample {
    AckSample { prior_in_flight: in_flight + 1, in_flight, ..AckSample::one_segment(NOW, ROUND_TRIP) }
}

fn sample(prior_delivered: u32, delivered: u32, application_limited: bool) -> Option<RateSample> {
    Some(RateSample {
        prior_delivered,
        delivered,
        interval: ROUND_TRIP,
        application_limited,
        in_flight: 0,
        prior_lost: 0,
    })
}

/// The target is what fills the path (40 segments) and three bursts of two for the end hosts' queues.
/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.2; bbr_quantization_budget.
#[test]
fn target_adds_bursts_and_is_even() {
    let mut bbr = cruising(1);
    let bandwidth = bbr.estimate();
    assert_eq!(bbr.in_flight_target(bandwidth, GAIN_ONE), 46);
    assert_eq!(bbr.in_flight_target(bandwidth, 2 * GAIN_ONE), 86);
    assert_eq!(bbr.in_flight_target(Bandwidth::of(41, ROUND_TRIP), GAIN_ONE), 48);
    bbr.phase = 0;
    assert_eq!(bbr.in_flight_target(bandwidth, GAIN_ONE), 48, "probing adds two");
    bbr.mode = Mode::Drain;
    assert_eq!(bbr.in_flight_target(bandwidth, GAIN_ONE), 46);
    bbr.min_rtt.rtt = None;
    assert_eq!(
        bbr.in_flight_target(bandwidth, GAIN_ONE),
        16,
        "the initial window and three bursts, because the path is unknown"
    );
}

#[test]
fn octets_and_segments_give_the_same_target_and_rate() {
    let (segments, octets) = (cruising(1), cruising(1000));
    let targets = [&segments, &octets].map(|bbr| bbr.in_flight_target(bbr.estimate(), GAIN_ONE));
    assert_eq!(targets, [46, 46_000]);
    assert_eq!([segments.min_window(), octets.min_window()], [4, 4000]);
    let [one, other] = [segments, octets].map(|bbr| bbr.pacing().rate as f64);
    assert!((one / 990_000.0 - 1.0).abs() < 1e-3 && (other / one - 1.0).abs() < 1e-3, "{one} and {other}");
    let mut unknown = bbr(1000);
    unknown.min_rtt.rtt = None;
    assert_eq!(unknown.in_flight_target(Bandwidth::default(), GAIN_ONE), 16_000);
}

/// bbr_packets_in_net_at_edt: segments that will be delivered before the pacer sends the next burst do not count
/// as in the network.
#[test]
fn in_network_excludes_units_delivered_before_the_next_burst() {
    let mut bbr = cruising(1);
    let later = AckSample { departure: NOW + Duration::from_micros(10_500), ..ack(20) };
    assert_eq!((bbr.in_network(20, &ack(20)), bbr.in_network(20, &later)), (20, 10));
    assert_eq!(bbr.in_network(5, &later), 0);
    bbr.pacing_gain = GAIN_ONE * 5 / 4;
    assert_eq!(bbr.in_network(20, &later), 12, "in a probe, the next burst counts as in the network");
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.4: in recovery, packets are conserved for a
/// round; then losses reduce the window; afterwards the saved window is restored.
#[test]
fn recovery_conserves_packets_for_a_round_and_restores_the_window() {
    let mut bbr = cruising(1);
    bbr.on_congestion(100);
    let fast =
        |in_flight, newly_lost| AckSample { newly_lost, recovery: RecoveryKind::Fast, ..ack(in_flight) };
    let mut cwnd = 100;
    for (in_flight, lost, window) in [(30, 5, 31), (30, 0, 31), (26, 4, 27), (20, 0, 27), (29, 0, 30)] {
        bbr.set_window(&fast(in_flight, lost), &mut cwnd);
        assert_eq!(cwnd, window, "{in_flight} in flight");
    }
    bbr.memory.end_conservation();
    bbr.set_window(&fast(20, 6), &mut cwnd);
    assert_eq!(cwnd, 25, "six segments are lost, and one is delivered");
    bbr.on_congestion(cwnd);
    bbr.set_window(&ack(20), &mut cwnd);
    assert_eq!(cwnd, 86, "the saved window of 100 segments is limited by the target");
}

/// tcp_bbr.c, bbr_set_state and bbr_set_cwnd_to_recover_or_restore: the window is also restored after a timeout,
/// but then without a round of packet conservation.
#[test]
fn window_is_restored_after_a_timeout() {
    let mut bbr = cruising(1);
    bbr.on_congestion(60);
    bbr.on_timeout(3);
    let mut cwnd = 1;
    bbr.set_window(&AckSample { recovery: RecoveryKind::Timeout, ..ack(0) }, &mut cwnd);
    assert_eq!(cwnd, 4, "BBRMinPipeCwnd");
    bbr.set_window(&ack(0), &mut cwnd);
    assert_eq!(cwnd, 61);
}

/// tcp_bbr.c, bbr_save_cwnd: a window that losses or a probe have already reduced is saved only if it is larger
/// than the saved window.
#[test]
fn reduced_window_is_saved_only_if_larger() {
    let after = |mode, recovery| {
        let mut bbr = Bbr { mode, ..cruising(1) };
        bbr.save_window(50);
        bbr.set_window(&AckSample { delivered: 1, recovery, ..ack(10) }, &mut 50);
        bbr.save_window(20);
        bbr.memory.restored_window(0)
    };
    assert_eq!(after(Mode::ProbeBandwidth, RecoveryKind::None), 20);
    assert_eq!(after(Mode::ProbeBandwidth, RecoveryKind::Fast), 50);
    assert_eq!(after(Mode::ProbeRoundTrip, RecoveryKind::None), 50);
}

/// tcp_bbr.c, bbr_save_cwnd: the window to which a timeout reduces cwnd is not saved, not even at the next
/// acknowledgment.
#[test]
fn window_of_a_timeout_is_not_saved() {
    let mut bbr = cruising(1);
    bbr.on_congestion(60);
    bbr.on_timeout(1);
    bbr.save_window(20);
    assert_eq!(bbr.memory.restored_window(0), 60);
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.5: below the target the window grows by the
/// delivered units; until the pipe is full it is not reduced.
#[test]
fn window_grows_to_its_target_by_the_delivered_units() {
    let next = |bbr: &mut Bbr, mut cwnd: u32| {
        bbr.set_window(&ack(10), &mut cwnd);
        cwnd
    };
    let mut full = cruising(1);
    assert_eq!([50, 85, 86, 200].map(|cwnd| next(&mut full, cwnd)), [51, 86, 86, 86]);
    let mut seeking = cruising(1);
    seeking.full.reached = false;
    seeking.deliveries.count_delivered(100);
    assert_eq!([50, 85, 86, 200].map(|cwnd| next(&mut seeking, cwnd)), [51, 86, 86, 200]);
    let mut beginning = cruising(1);
    beginning.full.reached = false;
    beginning.deliveries.count_delivered(8);
    assert_eq!(next(&mut beginning, 200), 201, "nine segments are delivered, fewer than the initial window");
    beginning.deliveries.count_delivered(1);
    assert_eq!(next(&mut beginning, 200), 200);
    let mut octets = cruising(1000);
    octets.full.reached = false;
    octets.deliveries.count_delivered(8000);
    assert_eq!(next(&mut octets, 200_000), 200_001);
}

/// tcp_bbr.c, bbr_ack_aggregation_cwnd: the window grows by the aggregated units, but by no more than arrive in 100 ms.
#[test]
fn window_includes_the_aggregated_acknowledgments() {
    let mut bbr = cruising(1);
    let at = NOW + Duration::from_millis(1);
    bbr.aggregation.on_acked(at, 30, bbr.estimate(), 1000);
    let mut cwnd = 500;
    bbr.set_window(&ack(10), &mut cwnd);
    assert_eq!(cwnd, 116, "30 more than 86, and even");
    bbr.aggregation.on_acked(at, 1000, bbr.estimate(), 1000);
    let mut cwnd = 500;
    bbr.set_window(&ack(10), &mut cwnd);
    assert!((184..=186).contains(&cwnd), "100 more: {cwnd}");
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.1.2: an application-limited sample changes the
/// bandwidth estimate only if the sample is greater.
#[test]
fn application_limited_sample_counts_only_if_greater() {
    let after = |delivered, limited| {
        let mut bbr = cruising(1);
        // Long after the last sample an older maximum has expired.
        bbr.rounds.count = 20;
        bbr.update_bandwidth(&ack(10), sample(0, delivered, limited));
        bbr.bandwidth.greatest()
    };
    let known = Bandwidth::of(40, ROUND_TRIP);
    assert_eq!(after(20, false), Bandwidth::of(20, ROUND_TRIP));
    assert_eq!(after(20, true), known);
    assert_eq!(after(60, true), Bandwidth::of(60, ROUND_TRIP));
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.1.1.3: a round ends when a segment that was sent in
/// it is acknowledged.
#[test]
fn rounds_are_counted_by_delivered_units() {
    let mut bbr = cruising(1);
    bbr.deliveries.count_delivered(9);
    for (prior_delivered, began, count) in [(0, false, 0), (1, true, 1), (9, false, 1), (10, true, 2)] {
        bbr.update_bandwidth(&ack(10), sample(prior_delivered, 10, false));
        assert_eq!((bbr.rounds.began, bbr.rounds.count), (began, count), "{prior_delivered}");
    }
}

/// The conditions that end a phase of ProbeBW. draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.4.3.
#[test]
fn phase_ends_after_a_round_trip_and_its_effect() {
    let is_over = |gain, after_ms, in_flight, newly_lost| {
        let mut bbr = cruising(1);
        bbr.pacing_gain = gain;
        bbr.phase_since = NOW;
        bbr.deliveries.sample(NOW + Duration::from_millis(after_ms), 1, false, Duration::ZERO);
        bbr.phase_is_over(&AckSample { newly_lost, prior_in_flight: in_flight, ..ack(0) })
    };
    let [probes, makes_good] = [GAIN_ONE * 5 / 4, GAIN_ONE * 3 / 4];
    // The connection cruises: for longer than a round trip, whatever is in flight.
    assert_eq!([40, 41].map(|ms| is_over(GAIN_ONE, ms, 10, 0)), [false, true]);
    assert!(!is_over(GAIN_ONE, 40, 10, 1));
    // The connection probes until 50 and their bursts are in the network, 56 with the two that are sent now, or until a segment is lost.
    assert_eq!([53, 54].map(|in_flight| is_over(probes, 41, in_flight, 0)), [false, true]);
    assert!(is_over(probes, 41, 10, 1) && !is_over(probes, 40, 10, 1) && !is_over(probes, 40, 54, 0));
    // The connection drains until 46 are in flight.
    assert_eq!([46, 47].map(|in_flight| is_over(makes_good, 1, in_flight, 0)), [true, false]);
    assert!(is_over(makes_good, 41, 47, 0));
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.4.4: after an idle period the connection sends at
/// the estimated bandwidth; it does not enter ProbeRTT, even if the minimum round-trip time expired in that
/// period.
#[test]
fn restart_from_idle_paces_at_the_estimated_bandwidth() {
    let later = NOW + RTT_LIFETIME + Duration::from_millis(8);
    let restarted = |limited| {
        let mut bbr = cruising(1);
        bbr.set_pacing_rate_with_gain(bbr.estimate(), 2 * GAIN_ONE, None);
        if limited {
            bbr.deliveries.limit_by_application(5);
        }
        bbr.on_restart(later, &mut 10);
        let rate = bbr.pacing().rate;
        let mut cwnd = 10;
        let late = AckSample { now: later, ..ack(0) };
        bbr.update_round_trip(&late, sample(1, 1, false), &mut cwnd);
        (rate.div_ceil(100_000), bbr.mode, bbr.restarts)
    };
    assert_eq!(restarted(true), (10, Mode::ProbeBandwidth, false));
    assert_eq!(restarted(false), (20, Mode::ProbeRoundTrip, false), "the application was not idle");
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.1.2.4: the minimum round-trip time is valid for ten
/// seconds; then any sample replaces it, except the sample of a single short segment, whose acknowledgment may be
/// delayed (tcp_bbr.c, bbr_update_min_rtt).
#[test]
fn minimum_rtt_expires() {
    let after = |ms, rtt_ms, may_be_delayed, delivered| {
        let mut bbr = cruising(1);
        let rtt = Some(Duration::from_millis(rtt_ms));
        let ack = AckSample { now: NOW + Duration::from_millis(ms), rtt, may_be_delayed, ..ack(10) };
        bbr.update_round_trip(&ack, sample(1, delivered, false), &mut 40);
        (bbr.min_rtt.rtt.unwrap().as_millis(), bbr.mode == Mode::ProbeRoundTrip)
    };
    assert_eq!(after(10_000, 50, false, 1), (40, false));
    assert_eq!(after(10_004, 50, false, 1), (50, true));
    assert_eq!(after(10_004, 50, true, 1), (40, true));
    assert_eq!(after(10_004, 50, true, 2), (50, true), "the acknowledgment of two segments is not delayed");
    assert_eq!(after(5, 39, true, 1), (39, false));
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.2.2: the pipe is full after three rounds in which
/// the bandwidth grew by less than a quarter. A timeout and a spurious loss detection restart the count
/// (tcp_bbr.c).
#[test]
fn timeout_restarts_the_full_pipe_check() {
    let rounds_until_full = |event: fn(&mut Bbr)| {
        let mut bbr = cruising(1);
        bbr.full = FullPipe::default();
        let round = |bbr: &mut Bbr| {
            bbr.rounds.began = true;
            bbr.check_full_pipe(sample(1, 1, false));
            bbr.full.reached
        };
        (0..3).for_each(|_| assert!(!round(&mut bbr)));
        event(&mut bbr);
        (1..9).find(|_| round(&mut bbr))
    };
    assert_eq!(rounds_until_full(|_| ()), Some(1));
    assert_eq!(rounds_until_full(|bbr| bbr.on_timeout(1)), Some(4));
    assert_eq!(rounds_until_full(|bbr| bbr.on_undo(1)), Some(4));
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.4.2: the cycle starts with a random phase other
/// than the one that drains the queue, so that flows do not probe at the same time.
#[test]
fn cycle_starts_in_a_random_phase() {
    let mut phases = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let mut bbr = bbr(1);
        let beginning =
            ConnectionStart { now: NOW, min_rtt: None, smoothed_rtt: None, segment: 1000, seed: Seed(seed) };
        bbr.begin(beginning, 10);
        bbr.begin_cycle();
        phases.insert(bbr.phase);
    }
    assert_eq!(phases.into_iter().collect::<Vec<_>>(), [0, 2, 3, 4, 5, 6, 7]);
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.5: the 200 ms of ProbeRTT start when at most four
/// segments are in flight.
#[test]
fn probe_rtt_keeps_little_in_flight() {
    let mut bbr = cruising(1);
    bbr.mode = Mode::ProbeRoundTrip;
    bbr.probe_round_trip(&ack(5), &mut 4);
    assert_eq!(bbr.min_rtt.low_flight_since, None);
    bbr.probe_round_trip(&ack(4), &mut 4);
    assert_eq!(bbr.min_rtt.low_flight_since, Some(NOW));
}

/// tcp_tso_autosize: at 12.5 MB/s a burst lasts 1/1024 s (12,207 octets); with a round trip of 1 ms another 32,607
/// octets are added.
#[test]
fn short_round_trip_has_longer_bursts() {
    let burst = |ms| {
        let mut bbr = cruising(1);
        bbr.set_pacing_rate_with_gain(
            Bandwidth::of(12_627, Duration::from_secs(1)),
            GAIN_ONE,
            Some(Duration::from_millis(ms)),
        );
        bbr.pacing().burst
    };
    assert_eq!((burst(40), burst(1)), (12, 44));
}

/// Runs rounds of 40 ms in which 20 units are delivered at once. If `losses` is true, 20 more are lost in each
/// round.
fn rounds(bbr: &mut Bbr, count: u64, now: &mut Time, lost: &mut u32, losses: bool) {
    for _ in 0..count {
        let departure = bbr.deliveries.on_segment_sent(*now, false);
        bbr.deliveries.on_segment_delivered(departure, *now);
        *now += ROUND_TRIP;
        let newly_lost = if losses { 20 } else { 0 };
        *lost += newly_lost;
        let ack = AckSample { now: *now, delivered: 20, newly_lost, lost: *lost, departure: *now, ..ack(0) };
        bbr.on_acknowledged(&ack, &mut 40, &mut 40);
    }
}

/// tcp_bbr.c, bbr_lt_bw_sampling: losses that acknowledgments report reveal a policer, whose rate is used for 48
/// rounds.
#[test]
fn losses_in_acknowledgments_detect_a_policer() {
    let (mut bbr, mut now, mut lost) = (cruising(1), NOW, 0);
    rounds(&mut bbr, 12, &mut now, &mut lost, false);
    assert_eq!(bbr.policer.bandwidth(), None);
    rounds(&mut bbr, 9, &mut now, &mut lost, true);
    assert_eq!(bbr.policer.bandwidth(), Some(Bandwidth::of(20, ROUND_TRIP)));
    assert_eq!(bbr.pacing_gain, GAIN_ONE);
    rounds(&mut bbr, 46, &mut now, &mut lost, false);
    assert!(bbr.policer.bandwidth().is_some());
    bbr.phase_since = Time::ZERO;
    rounds(&mut bbr, 1, &mut now, &mut lost, false);
    assert_eq!(bbr.policer.bandwidth(), None);
    assert_eq!(bbr.phase_since, now, "the cycle restarts");
}

/// tcp_bbr.c, bbr_update_ack_aggregation: each acknowledgment that delivers units updates the excess.
#[test]
fn aggregated_acknowledgments_raise_the_excess() {
    let (mut bbr, mut now, mut lost) = (cruising(1), NOW, 0);
    rounds(&mut bbr, 3, &mut now, &mut lost, false);
    let before = bbr.aggregation.excess();
    let departure = bbr.deliveries.on_segment_sent(now, false);
    bbr.deliveries.on_segment_delivered(departure, now);
    let at_once = AckSample { now: now + ROUND_TRIP, delivered: 90, ..ack(0) };
    bbr.on_acknowledged(&at_once, &mut 200, &mut 40);
    assert!(bbr.aggregation.excess() >= before + 30, "{} after {before}", bbr.aggregation.excess());
}

/// tcp_bbr.c, bbr_min_tso_segs: below a rate of 1.2 Mbit/s, each burst is a single segment.
#[test]
fn slow_paths_send_single_segments() {
    assert_eq!([0, 149_999, 150_000].map(min_burst_segments), [1, 1, 2]);
}

/// tcp_bbr.c, bbr_update_gains: BBR does not probe for bandwidth above the rate of a detected policer.
#[test]
fn a_policed_path_is_not_probed() {
    let mut bbr = cruising(1);
    bbr.phase = 0;
    bbr.set_gains();
    assert_eq!((bbr.pacing_gain, bbr.cwnd_gain), (GAIN_ONE * 5 / 4, 2 * GAIN_ONE));
    let mut tally = DeliveryTotals { at: NOW, delivered: 0, lost: 0 };
    for _ in 0..20 {
        tally = DeliveryTotals {
            at: tally.at + ROUND_TRIP,
            delivered: tally.delivered + 20,
            lost: tally.lost + 20,
        };
        let turn = PolicerUpdate {
            tally,
            losses: true,
            application_limited: false,
            round_began: true,
            octets_per_unit: 1000,
        };
        bbr.policer.observe(turn, true);
    }
    bbr.set_gains();
    assert_eq!((bbr.pacing_gain, bbr.estimate()), (GAIN_ONE, Bandwidth::of(20, ROUND_TRIP)));
}
