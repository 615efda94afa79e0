//! Tests single rules of BBR version 3. Draft-ietf-ccwg-bbr-05. Gains are whole 256ths: 0.85 of 100 is 86, and 0.7 is 69.

use hol_base::Duration;

use super::loss::in_flight_at_loss;
use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(40);
const NOW: Time = Time::from_millis(1000);

/// Returns a new connection with an initial window of ten segments of 1000 octets.
fn bbr() -> Bbr3 {
    let mut bbr = Bbr3::new(1);
    let rtt = Some(ROUND_TRIP);
    bbr.begin(
        ConnectionStart { now: NOW, min_rtt: rtt, smoothed_rtt: rtt, segment: 1000, seed: Seed(1) },
        10,
    );
    bbr
}

/// Returns a connection in `state`, on a path that 100 segments in flight fill.
fn in_state(state: State) -> Bbr3 {
    let mut bbr = bbr();
    bbr.model.add_sample(Bandwidth::of(100, ROUND_TRIP), false);
    bbr.model.bound_bandwidth();
    bbr.full.reached = true;
    bbr.state = state;
    bbr.set_pacing_rate_with_gain(bbr.model.bandwidth, GAIN_ONE, None);
    bbr
}

/// Returns the acknowledgment of one segment, after which `in_flight` segments are in flight.
fn ack(in_flight: u32) -> AckSample {
    AckSample { prior_in_flight: in_flight + 1, in_flight, ..AckSample::one_segment(NOW, ROUND_TRIP) }
}

fn sample(bandwidth: u32, in_flight: u32, application_limited: bool) -> RateSample {
    RateSample {
        prior_delivered: 1,
        delivered: bandwidth,
        interval: ROUND_TRIP,
        application_limited,
        in_flight,
        prior_lost: 0,
    }
}

fn lost(in_flight: u32, lost: u32, number: u32) -> LostSegment {
    let departure = DeliveryState::begin(NOW, 1).on_segment_sent(NOW, true).with_counts(in_flight, 0);
    LostSegment { departure, units: 1, lost, range: (number, number + 1) }
}

/// BBRInitPacingRate computes the initial rate. draft-ietf-ccwg-bbr-05, section 5.6.2.
#[test]
fn initial_rate_is_cwnd_per_round_trip_times_the_startup_gain() {
    let rate = bbr().pacing().rate as f64;
    assert!((rate / (10.0 * 1000.0 / 0.04 * 2.77 * 0.99) - 1.0).abs() < 0.01, "{rate}");
}

/// draft-ietf-ccwg-bbr-05, section 5.3.1.2: the pipe is full after three rounds in which the rate grew by less
/// than a quarter.
#[test]
fn three_rounds_without_growth_mean_a_full_pipe() {
    let mut full = FullPipe::default();
    let rate = |segments| Bandwidth::of(segments, ROUND_TRIP);
    for segments in [100, 124, 124, 125, 150, 150] {
        full.check_growth(rate(segments));
        assert!(!full.reached, "{segments}");
    }
    full.check_growth(rate(155));
    assert!(full.now_reached && full.reached);
    full.reset(rate(100));
    assert!(!full.now_reached && full.reached, "BBR.full_bw_reached lasts");
}

/// draft-ietf-ccwg-bbr-05, section 5.3.1.3: startup ends after a round in fast recovery in which more than 2 %
/// were lost, in at least six ranges.
#[test]
fn startup_ends_above_two_per_cent_loss_in_six_ranges() {
    let exits = |ranges: u32, in_flight: u32, recovery| {
        let mut bbr = in_state(State::Startup);
        bbr.full.reached = false;
        for number in 0..ranges {
            bbr.on_lost(NOW, &lost(in_flight, number + 1, 2 * number), 100);
        }
        bbr.losses.round_began = true;
        let ack = AckSample { recovery, lost: ranges, ..ack(100) };
        bbr.check_startup_done(&ack, Some(&sample(100, in_flight, false)));
        (bbr.state, bbr.model.long_term_in_flight)
    };
    assert_eq!(exits(6, 100, RecoveryKind::Fast), (State::Drain, Some(100)));
    assert_eq!(exits(5, 100, RecoveryKind::Fast).0, State::Startup);
    assert_eq!(exits(6, 300, RecoveryKind::Fast).0, State::Startup, "6 of 300 are 2 %");
    assert_eq!(exits(6, 100, RecoveryKind::None).0, State::Startup);
}

/// draft-ietf-ccwg-bbr-05, section 5.3.2: drain lasts until at most one bandwidth-delay product is in flight, or
/// for three rounds.
#[test]
fn drain_ends_at_the_bdp_or_after_three_rounds() {
    let after = |in_flight, rounds| {
        let mut bbr = in_state(State::Drain);
        bbr.rounds.count = rounds;
        bbr.check_drain_done(&ack(in_flight));
        bbr.state
    };
    assert_eq!([after(101, 3), after(100, 0), after(101, 4)], [State::Drain, State::Down, State::Down]);
}

/// draft-ietf-ccwg-bbr-05, section 5.3.3.6: BBRIsTimeToCruise leaves a headroom of 15 %.
#[test]
fn down_lasts_until_there_is_headroom() {
    let after = |long, in_flight| {
        let mut bbr = in_state(State::Down);
        bbr.model.long_term_in_flight = long;
        bbr.cycle.wait_for(Duration::from_secs(2), NOW);
        bbr.update_cycle(&ack(in_flight), None, 200);
        bbr.state
    };
    assert_eq!([after(None, 101), after(None, 100)], [State::Down, State::Cruise]);
    assert_eq!([after(Some(100), 87), after(Some(100), 86)], [State::Down, State::Cruise]);
}

/// draft-ietf-ccwg-bbr-05, section 5.3.3.5: BBRIsTimeToProbeBW starts the next probe.
#[test]
fn next_probe_starts_after_its_wait_or_the_rounds_of_reno() {
    let probes = |millis: u64, rounds| {
        let mut bbr = in_state(State::Cruise);
        bbr.cycle.wait_for(Duration::from_secs(2), NOW);
        bbr.rounds.since_probe = rounds;
        let ack = AckSample { now: NOW + Duration::from_millis(millis), ..ack(90) };
        bbr.update_cycle(&ack, None, 200);
        bbr.state == State::Refill
    };
    assert_eq!([probes(2000, 62), probes(2001, 0), probes(0, 63)], [false, true, true]);
}

/// draft-ietf-ccwg-bbr-05, section 5.3.3.6: after a round of ProbeBW_REFILL comes ProbeBW_UP, which ends when the
/// bandwidth stops growing, unless inflight_longterm is the limit.
#[test]
fn up_follows_one_round_of_refill_and_ends_with_a_full_pipe() {
    let mut bbr = in_state(State::Refill);
    bbr.rounds.began = true;
    bbr.update_cycle(&ack(100), Some(&sample(100, 100, false)), 200);
    assert_eq!((bbr.state, bbr.losses.bw_probe_samples), (State::Up, true));
    bbr.rounds.began = false;
    bbr.full.now_reached = true;
    bbr.model.long_term_in_flight = Some(200);
    bbr.update_cycle(&ack(200), Some(&sample(100, 100, false)), 200);
    assert_eq!(
        (bbr.state, bbr.full.now_reached),
        (State::Up, false),
        "the long-term bound limited the data in flight"
    );
    bbr.full.now_reached = true;
    bbr.update_cycle(&ack(150), Some(&sample(100, 100, false)), 150);
    assert_eq!(bbr.state, State::Down);
}

/// draft-ietf-ccwg-bbr-05, section 5.3.3.6: inflight_longterm grows by 1, 2, 4 ... segments a round.
#[test]
fn long_term_bound_grows_exponentially_while_used() {
    let mut bbr = in_state(State::Up);
    bbr.model.long_term_in_flight = Some(100);
    bbr.start_up(NOW, Bandwidth::default(), 100);
    let mut grown = Vec::new();
    for _ in 0..4 {
        for number in 0..100 {
            bbr.rounds.began = number == 99;
            bbr.update_cycle(
                &ack(100),
                Some(&sample(100, 100, false)),
                bbr.model.long_term_in_flight.unwrap(),
            );
        }
        grown.push(bbr.model.long_term_in_flight.unwrap());
    }
    let steps: Vec<u32> = grown.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(grown[0], 101);
    assert!(steps[0] >= 1 && steps[1] >= 2 * steps[0] - 1 && steps[2] > steps[1], "{grown:?}");
}

/// draft-ietf-ccwg-bbr-05, section 5.5.10.2: a probe that loses more than 2 % of the data in flight sets the bound
/// once, to at least 0.7 of the target.
#[test]
fn losses_of_a_probe_bound_the_long_term_inflight() {
    let bound = |in_flight: u32, count: u32, bw_probe_samples| {
        let mut bbr = in_state(State::Up);
        bbr.losses.bw_probe_samples = bw_probe_samples;
        for number in 1..=count {
            bbr.on_lost(NOW, &lost(in_flight, number, number), 200);
        }
        (bbr.model.long_term_in_flight, bbr.state)
    };
    assert_eq!(bound(150, 3, true), (None, State::Up), "3 of 150 are 2 %");
    assert_eq!(bound(150, 4, true), (Some(149), State::Down));
    assert_eq!(bound(150, 9, true), (Some(149), State::Down), "once");
    assert_eq!(bound(50, 2, true), (Some(69), State::Down), "BBR.Beta");
    assert_eq!(bound(150, 4, false), (None, State::Up));
}

/// BBRInflightAtLoss finds where the loss threshold was crossed. draft-ietf-ccwg-bbr-05, section 5.5.10.2.
#[test]
fn inflight_at_loss_is_where_the_threshold_was_crossed() {
    // 10 of the 1000 units before it are lost, and 100 of this segment; 2 % are reached after (20 - 10) / 0.98 units of it.
    assert_eq!(in_flight_at_loss(1100, 110, 100), 1010);
    assert_eq!(in_flight_at_loss(101, 3, 1), 100, "the threshold was crossed before this segment");
}

/// draft-ietf-ccwg-bbr-05, section 5.5.10.3: losses reduce the short-term bounds once per round, to the delivered
/// amount but by at most 30 %, and not during a probe.
#[test]
fn losses_reduce_the_short_term_model_to_the_latest_delivery() {
    let reduced = |state, delivered| {
        let mut bbr = in_state(state);
        bbr.model.latest = (Bandwidth::of(delivered, ROUND_TRIP), delivered);
        bbr.losses.in_round = true;
        bbr.losses.round_began = true;
        bbr.update_congestion_signals(&sample(delivered, 100, true), 200);
        bbr.model.bound_bandwidth();
        (bbr.model.bandwidth, bbr.model.short_term_in_flight)
    };
    let rate = |segments| Bandwidth::of(segments, ROUND_TRIP);
    assert_eq!(reduced(State::Cruise, 90), (rate(90), Some(139)));
    assert_eq!(reduced(State::Cruise, 10), (rate(100).times(super::model::BETA), Some(139)));
    assert_eq!(reduced(State::Up, 90), (rate(100), None));
}

/// draft-ietf-ccwg-bbr-05, section 5.3.3.6: ProbeBW_REFILL resets the short-term model.
#[test]
fn refill_forgets_the_short_term_model() {
    let mut bbr = in_state(State::Cruise);
    bbr.model.reduce_short_term(200);
    bbr.rounds.since_probe = 63;
    bbr.update_cycle(&ack(90), None, 200);
    assert_eq!(
        (bbr.state, bbr.model.short_term_bandwidth, bbr.model.short_term_in_flight),
        (State::Refill, None, None)
    );
}

/// draft-ietf-ccwg-bbr-05, section 5.5.6: the filter of the maximum bandwidth covers two cycles.
#[test]
fn a_bandwidth_lasts_for_two_cycles() {
    let mut model = Model::default();
    let rate = |segments| Bandwidth::of(segments, ROUND_TRIP);
    model.add_sample(rate(100), false);
    model.start_cycle();
    model.add_sample(rate(50), false);
    assert_eq!(model.max_bandwidth(), rate(100));
    model.start_cycle();
    assert_eq!(model.max_bandwidth(), rate(50));
    model.start_cycle();
    model.start_cycle();
    assert_eq!(model.max_bandwidth(), rate(50), "a cycle without a sample is not counted");
}

/// draft-ietf-ccwg-bbr-05, section 5.5.4: an application-limited rate changes the bandwidth estimate only if the
/// rate is greater.
#[test]
fn application_limited_rate_never_lowers_the_estimate() {
    let mut model = Model::default();
    let rate = |segments| Bandwidth::of(segments, ROUND_TRIP);
    model.add_sample(rate(100), true);
    model.start_cycle();
    model.add_sample(rate(60), true);
    model.start_cycle();
    assert_eq!(model.max_bandwidth(), rate(100));
    model.add_sample(rate(120), true);
    assert_eq!(model.max_bandwidth(), rate(120));
}

/// BBRHandleSpuriousLossDetection restores the model. draft-ietf-ccwg-bbr-05, section 5.5.11.2.
#[test]
fn spurious_recovery_restores_the_model() {
    let mut bbr = in_state(State::Up);
    bbr.losses.bw_probe_samples = true;
    bbr.on_congestion(200);
    // The fourth loss ends the probe; later ones do not change the saved state.
    for number in 1..=9 {
        bbr.on_lost(NOW, &lost(150, number, number), 200);
    }
    assert_eq!((bbr.state, bbr.model.long_term_in_flight), (State::Down, Some(149)));
    bbr.on_undo(200);
    assert_eq!((bbr.state, bbr.model.long_term_in_flight), (State::Up, None));
}

/// draft-ietf-ccwg-bbr-05, section 5.5.11.2: a D-SACK that arrives after the end of recovery still restores the
/// state from before the recovery, but not after the next loss.
#[test]
fn saved_state_is_kept_until_the_next_loss() {
    let mut bbr = in_state(State::Up);
    bbr.losses.bw_probe_samples = true;
    bbr.on_congestion(200);
    for number in 1..=4 {
        bbr.on_lost(NOW, &lost(150, number, number), 200);
    }
    let mut cwnd = 200;
    bbr.set_window(&AckSample { recovery: RecoveryKind::Fast, ..ack(100) }, &mut cwnd);
    bbr.set_window(&ack(100), &mut cwnd);
    let late = bbr.clone();
    bbr.on_undo(200);
    assert_eq!((bbr.state, bbr.model.long_term_in_flight), (State::Up, None));
    let mut bbr = late;
    bbr.state = State::Cruise;
    bbr.losses.in_round = false;
    bbr.on_congestion(200);
    bbr.on_undo(200);
    assert_eq!(bbr.state, State::Cruise, "the second recovery was spurious, not the first");
}

/// draft-ietf-ccwg-bbr-05, section 5.6.4.7: each state limits the window by its own bound.
#[test]
fn window_is_capped_by_the_state() {
    let window = |state, long, short| {
        let mut bbr = in_state(state);
        (bbr.model.long_term_in_flight, bbr.model.short_term_in_flight) = (long, short);
        let mut cwnd = 500;
        bbr.set_window(&ack(100), &mut cwnd);
        cwnd
    };
    assert_eq!(window(State::Down, None, None), 200);
    assert_eq!(window(State::Up, None, None), 227, "2.25 bandwidth-delay products and two segments");
    assert_eq!(window(State::Up, Some(150), None), 150);
    assert_eq!(window(State::Cruise, Some(100), None), 86);
    assert_eq!(window(State::Cruise, Some(100), Some(60)), 60);
    assert_eq!(window(State::Refill, Some(3), None), 4, "BBR.MinPipeCwnd");
    assert_eq!(window(State::ProbeRtt, None, None), 50);
}

/// BBRSaveCwnd and BBRRestoreCwnd restore the window after recovery. draft-ietf-ccwg-bbr-05, section 5.6.4.4.
#[test]
fn window_is_restored_after_recovery() {
    let mut bbr = in_state(State::Cruise);
    bbr.on_congestion(180);
    let mut cwnd = 20;
    bbr.on_timeout();
    bbr.set_window(&AckSample { recovery: RecoveryKind::Timeout, ..ack(10) }, &mut cwnd);
    assert_eq!(cwnd, 21);
    bbr.set_window(&ack(10), &mut cwnd);
    assert_eq!(cwnd, 181);
}

/// draft-ietf-ccwg-bbr-05, section 5.4.1: after a restart from idle, the connection paces at the bandwidth and
/// does not enter ProbeRTT.
#[test]
fn a_restart_from_idle_paces_at_the_bandwidth() {
    let mut bbr = in_state(State::Down);
    bbr.deliveries.limit_by_application(0);
    let mut cwnd = 200;
    bbr.set_pacing_rate_with_gain(bbr.model.bandwidth, DOWN_GAIN, None);
    let slower = bbr.pacing().rate;
    bbr.on_restart(NOW, &mut cwnd);
    assert!((bbr.pacing().rate as f64 / slower as f64 - 1.0 / 0.9).abs() < 0.01);
    let late = AckSample { now: NOW + Duration::from_secs(6), ..ack(0) };
    bbr.update_min_rtt(&late);
    bbr.check_probe_rtt(&late, &mut cwnd);
    assert_eq!(bbr.state, State::Down);
}
