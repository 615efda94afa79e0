//! Runs BBR version 3 through its states on a path with a queue. Draft-ietf-ccwg-bbr-05.

use std::collections::VecDeque;

use hol_base::Duration;

use super::round_trip::{PROBE_DURATION, PROBE_INTERVAL};
use super::*;

const SEGMENT: u32 = 1448;
/// Rate of the link in segments per second. With a round-trip time of 40 ms, 100 segments in flight fill the path.
const RATE: u64 = 2500;
const ROUND_TRIP: Duration = Duration::from_millis(40);
const BDP: u32 = 100;

/// A segment in flight.
struct Sent {
    acknowledged: Time,
    sent: Time,
    departure: DeliveryAtSend,
    is_lost: bool,
    number: u32,
}

/// A greedy sender, a link with a queue, random losses, and a receiver that acknowledges each segment; a loss
/// is detected when the next segment is acknowledged.
struct Path {
    bbr: Bbr3,
    cwnd: u32,
    now: Time,
    departure: Time,
    line_free: Time,
    flight: VecDeque<Sent>,
    /// Capacity of the queue in segments.
    queue: u64,
    loss: f64,
    chance: Rng,
    lost: u32,
    sent: u32,
    delivered: u64,
    recovers_until: u32,
    states: Vec<(Time, State)>,
}

impl Path {
    fn new(queue: u64, loss: f64) -> Self {
        let now = Time::from_millis(1000);
        let mut bbr = Bbr3::new(1);
        let rtt = Some(ROUND_TRIP);
        bbr.begin(
            ConnectionStart { now, min_rtt: rtt, smoothed_rtt: rtt, segment: SEGMENT, seed: Seed(1) },
            10,
        );
        Self {
            bbr,
            cwnd: 10,
            now,
            departure: now,
            line_free: now,
            flight: VecDeque::new(),
            queue,
            loss,
            chance: Seed(2).rng(),
            lost: 0,
            sent: 0,
            delivered: 0,
            recovers_until: 0,
            states: vec![(now, State::Startup)],
        }
    }

    fn send(&mut self) {
        let in_flight = self.flight.len() as u32;
        let departure = self.bbr.on_segment_sent(self.now, in_flight > 0, in_flight, self.lost);
        let service = Duration::from_nanos(1_000_000_000 / RATE);
        let waiting = self.line_free.saturating_since(self.now);
        let is_lost = self.chance.chance(self.loss) || waiting > service * self.queue;
        let free = self.line_free.max(self.now) + service;
        if !is_lost {
            self.line_free = free;
        }
        self.sent += 1;
        let (acknowledged, sent) = (free + ROUND_TRIP, self.now);
        self.flight.push_back(Sent { acknowledged, sent, departure, is_lost, number: self.sent });
        let gap = u64::from(SEGMENT) * 1_000_000_000 / self.bbr.pacing().rate.max(1);
        self.departure = self.departure.max(self.now) + Duration::from_nanos(gap);
    }

    fn acknowledge(&mut self) {
        let prior_in_flight = self.flight.len() as u32;
        let first = self.flight.pop_front().expect("something is in flight");
        let (mut newly_lost, mut delivered, mut rtt) = (0, 0, None);
        if first.is_lost {
            (self.lost, newly_lost) = (self.lost + 1, 1);
            if self.recovers_until < first.number {
                self.recovers_until = self.sent;
                self.bbr.on_congestion(self.cwnd);
            }
            let (lost, range) = (self.lost, (first.number, first.number + 1));
            self.bbr.on_lost(
                self.now,
                &LostSegment { departure: first.departure, units: 1, lost, range },
                self.cwnd,
            );
        } else {
            (delivered, rtt) = (1, Some(self.now.since(first.sent)));
            self.delivered += 1;
            self.bbr.deliveries.on_segment_delivered(first.departure, first.sent);
        }
        let is_recovering = first.number < self.recovers_until;
        let ack = AckSample {
            is_cwnd_limited: prior_in_flight >= self.cwnd,
            progress: (first.number, self.sent),
            delivered,
            newly_lost,
            lost: self.lost,
            rtt,
            prior_in_flight,
            in_flight: prior_in_flight - 1,
            recovery: if is_recovering { RecoveryKind::Fast } else { RecoveryKind::None },
            departure: self.departure,
            ..AckSample::one_segment(self.now, ROUND_TRIP)
        };
        self.bbr.on_acknowledged(&ack, &mut self.cwnd);
        if self.states.last().map(|(_, state)| *state) != Some(self.bbr.state) {
            self.states.push((self.now, self.bbr.state));
        }
    }

    /// Runs the path for this many seconds, and calls `look` with it after each acknowledgment.
    fn run(&mut self, seconds: u64, mut look: impl FnMut(&Self)) {
        let until = self.now + Duration::from_secs(seconds);
        while self.now < until {
            let leaves = ((self.flight.len() as u32) < self.cwnd).then(|| self.departure.max(self.now));
            let comes = self.flight.front().map(|sent| sent.acknowledged);
            match (leaves, comes) {
                (Some(leaves), Some(comes)) if comes > leaves => {
                    self.now = leaves;
                    self.send();
                }
                (_, Some(comes)) => {
                    self.now = self.now.max(comes);
                    self.acknowledge();
                    look(self);
                }
                (Some(leaves), None) => {
                    self.now = leaves;
                    self.send();
                }
                (None, None) => unreachable!("the pacer allows a segment when nothing is in flight"),
            }
        }
    }

    /// Runs the path for `seconds`; returns the share of the link's capacity that is used in this time.
    fn utilisation(&mut self, seconds: u64) -> f64 {
        let before = self.delivered;
        self.run(seconds, |_| ());
        (self.delivered - before) as f64 / (seconds * RATE) as f64
    }

    fn order(&self) -> Vec<State> {
        self.states.iter().map(|(_, state)| *state).collect()
    }
}

/// draft-ietf-ccwg-bbr-05, section 5.3: startup, drain, and then the cycle of ProbeBW; the bandwidth is found
/// within 2 %.
#[test]
fn states_follow_their_order_and_the_bandwidth_is_found() {
    let mut path = Path::new(1000, 0.0);
    path.run(4, |_| ());
    let expected = [
        State::Startup,
        State::Drain,
        // Drain leaves at most one bandwidth-delay product in flight, so DOWN ends at once.
        State::Cruise,
        State::Refill,
        State::Up,
        State::Down,
        State::Cruise,
    ];
    let order = path.order();
    assert!(order.len() >= 6, "{order:?}");
    assert_eq!(order[..], expected[..order.len().min(expected.len())]);
    // Section 5.3.1.1: the rate doubles each round, from 10 segments to 100; three more rounds show that the pipe is full.
    let startup = path.states[1].0.since(path.states[0].0);
    assert!((ROUND_TRIP * 5..=ROUND_TRIP * 14).contains(&startup), "{startup}");
    let rate = path.bbr.model.max_bandwidth().octets_per_second(SEGMENT, GAIN_ONE) as f64;
    let line = (RATE * u64::from(SEGMENT)) as f64;
    assert!(
        (rate / line - 1.0).abs() < 0.02,
        "the estimate is {rate} octets a second, the rate of the link {line}"
    );
}

/// The pacing rate is 1 % below the bandwidth except in probes (draft-ietf-ccwg-bbr-05, section 5.6.2), and
/// ProbeRTT costs at most 2 % (section 5.3.4.2).
#[test]
fn a_clean_link_is_used_and_its_queue_is_short() {
    let mut path = Path::new(1000, 0.0);
    path.run(2, |_| ());
    let used = path.utilisation(20);
    assert!(used > 0.96, "{used}");
    let (mut waits, mut looks) = (0.0, 0.0);
    path.run(10, |path| {
        waits += path.line_free.saturating_since(path.now).as_secs_f64() * RATE as f64;
        looks += 1.0;
    });
    assert!(waits / looks < f64::from(BDP) / 4.0, "on average {} segments are queued", waits / looks);
}

/// draft-ietf-ccwg-bbr-05, section 5.3.3.5: between two probes (here at most 3 s or 75 rounds), each round with
/// losses reduces the rate by 1 %, in the end to half.
#[test]
fn one_per_cent_random_loss_costs_little_throughput() {
    let mut path = Path::new(1000, 0.01);
    path.run(3, |_| ());
    let used = path.utilisation(30);
    assert!(used > 0.8, "{used}");
}

/// draft-ietf-ccwg-bbr-05, section 5.5.10.2: with a short queue the sender finds inflight_longterm, and the queue
/// does not overflow for long.
#[test]
fn short_queue_is_used_with_few_losses() {
    let mut path = Path::new(20, 0.0);
    path.run(15, |_| ());
    let (lost, sent) = (path.lost, path.sent);
    let used = path.utilisation(20);
    let share = f64::from(path.lost - lost) / f64::from(path.sent - sent);
    assert!(
        used > 0.9 && share < 0.02,
        "shares of the rate that is used and of segments that are lost: {used}, {share}"
    );
}

/// draft-ietf-ccwg-bbr-05, section 5.3.4: every five seconds half of the bandwidth-delay product is in flight for
/// 200 ms and a round.
#[test]
fn round_trip_is_probed_every_five_seconds() {
    let mut path = Path::new(1000, 0.0);
    let mut min = u32::MAX;
    path.run(22, |path| {
        if path.bbr.state == State::ProbeRtt {
            min = min.min(path.flight.len() as u32);
        }
    });
    let probes: Vec<(Time, Duration)> = path
        .states
        .windows(2)
        .filter(|pair| pair[0].1 == State::ProbeRtt)
        .map(|pair| (pair[0].0, pair[1].0.since(pair[0].0)))
        .collect();
    assert!((3..=4).contains(&probes.len()), "{:?}", path.states);
    for (at, length) in &probes {
        assert!((PROBE_DURATION..PROBE_DURATION + ROUND_TRIP * 4).contains(length), "{length} at {at}");
    }
    for pair in probes.windows(2) {
        let apart = pair[1].0.since(pair[0].0);
        assert!((PROBE_INTERVAL..PROBE_INTERVAL + Duration::from_millis(700)).contains(&apart), "{apart}");
    }
    assert!((BDP / 2 - 10..=BDP / 2 + 5).contains(&min), "{min}");
}

/// draft-ietf-ccwg-bbr-05, section 5.3.3.5: the sender probes for bandwidth every 2 to 3 seconds or, if the
/// bandwidth-delay product is small, as often as Reno would need, but after at most 63 rounds.
#[test]
fn bandwidth_is_probed_every_2_to_3_seconds_or_63_rounds() {
    let mut path = Path::new(1000, 0.0);
    path.run(20, |_| ());
    // ProbeRTT restarts the clock of the cycle.
    let undisturbed = path.states.split(|(_, state)| *state == State::ProbeRtt);
    let mut intervals = Vec::new();
    for stretch in undisturbed {
        let ups: Vec<Time> =
            stretch.iter().filter(|(_, state)| *state == State::Up).map(|(at, _)| *at).collect();
        intervals.extend(ups.windows(2).map(|pair| pair[1].since(pair[0])));
    }
    assert!(!intervals.is_empty(), "{:?}", path.states);
    for apart in intervals {
        assert!((Duration::from_secs(2)..Duration::from_secs(4)).contains(&apart), "{apart}");
    }
}
