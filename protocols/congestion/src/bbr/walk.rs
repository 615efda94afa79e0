//! Runs BBR through its modes on a path that only delays packets.
//! draft-cardwell-iccrg-bbr-congestion-control-00.

use std::collections::VecDeque;

use super::*;
use crate::DeliveryAtSend;

const SEGMENT: u32 = 1448;
/// Rate of the link in segments per second: one per millisecond.
const RATE: u64 = 1000;
const ROUND_TRIP: Duration = Duration::from_millis(40);
/// The bandwidth-delay product of the path, in segments.
const BDP: u32 = 40;

/// A greedy sender, a link with an unlimited queue, and a receiver that acknowledges each segment.
struct Path {
    bbr: Bbr,
    cwnd: u32,
    ssthresh: u32,
    now: Time,
    /// The time at which pacing allows the next segment.
    departure: Time,
    line_free: Time,
    /// For each segment in flight: the time of its acknowledgment, the time it was sent, and the delivery
    /// state at that time.
    flight: VecDeque<(Time, Time, DeliveryAtSend)>,
    min_rtt: Duration,
    /// The modes of BBR so far, with their start times.
    modes: Vec<(Time, Mode)>,
}

impl Path {
    fn new() -> Self {
        let now = Time::from_millis(1000);
        let mut bbr = Bbr::new(1);
        let rtt = Some(ROUND_TRIP);
        bbr.begin(
            ConnectionStart { now, min_rtt: rtt, smoothed_rtt: rtt, segment: SEGMENT, seed: Seed(1) },
            10,
        );
        Self {
            bbr,
            cwnd: 10,
            ssthresh: u32::MAX,
            now,
            departure: now,
            line_free: now,
            flight: VecDeque::new(),
            min_rtt: ROUND_TRIP,
            modes: vec![(now, Mode::Startup)],
        }
    }

    fn send(&mut self) {
        let outstanding = !self.flight.is_empty();
        let remembered = self.bbr.deliveries.on_segment_sent(self.now, outstanding);
        self.line_free = self.line_free.max(self.now) + Duration::from_nanos(1_000_000_000 / RATE);
        self.flight.push_back((self.line_free + ROUND_TRIP, self.now, remembered));
        let gap = u64::from(SEGMENT) * 1_000_000_000 / self.bbr.pacing().rate.max(1);
        self.departure = self.departure.max(self.now) + Duration::from_nanos(gap);
    }

    fn acknowledge(&mut self) {
        let prior_in_flight = self.flight.len() as u32;
        let (_, sent, departure) = self.flight.pop_front().expect("something is in flight");
        let rtt = self.now.since(sent);
        self.min_rtt = self.min_rtt.min(rtt);
        self.bbr.deliveries.on_segment_delivered(departure, sent);
        let ack = AckSample {
            min_rtt: Some(self.min_rtt),
            prior_in_flight,
            in_flight: prior_in_flight - 1,
            departure: self.departure,
            ..AckSample::one_segment(self.now, rtt)
        };
        self.bbr.on_acknowledged(&ack, &mut self.cwnd, &mut self.ssthresh);
        if self.modes.last().is_some_and(|(_, mode)| *mode != self.bbr.mode) {
            self.modes.push((self.now, self.bbr.mode));
        }
    }

    /// Runs the path until `seconds` after the start, and calls `look` after each acknowledgment.
    fn run(&mut self, seconds: u64, mut look: impl FnMut(&Self)) {
        let end = Time::from_millis(1000 + 1000 * seconds);
        while self.now < end {
            let may_send = (self.flight.len() as u32) < self.cwnd;
            let leaves = Some(self.departure.max(self.now)).filter(|_| may_send);
            let comes = self.flight.front().map(|(at, ..)| *at);
            match (leaves, comes) {
                (Some(leaves), Some(comes)) if comes <= leaves => self.step_to(comes, &mut look),
                (Some(leaves), _) => {
                    self.now = leaves;
                    self.send();
                }
                (None, Some(comes)) => self.step_to(comes, &mut look),
                (None, None) => unreachable!("the pacer allows a segment when nothing is in flight"),
            }
        }
    }

    fn step_to(&mut self, at: Time, look: &mut impl FnMut(&Self)) {
        self.now = at;
        self.acknowledge();
        look(self);
    }

    /// Returns the queue length in segments.
    fn queue(&self) -> f64 {
        self.line_free.saturating_since(self.now).as_millis_f64() * RATE as f64 / 1000.0
    }
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3: BBR goes through startup, drain and then
/// the cycle of ProbeBW.
#[test]
fn modes_follow_their_order_and_the_bandwidth_is_found() {
    let mut path = Path::new();
    path.run(3, |_| ());
    let modes: Vec<Mode> = path.modes.iter().map(|(_, mode)| *mode).collect();
    assert_eq!(modes, [Mode::Startup, Mode::Drain, Mode::ProbeBandwidth]);
    // Section 4.3.2: the rate doubles each round, from 10 segments to 40; three more rounds show that the
    // pipe is full.
    let startup = path.modes[1].0.since(path.modes[0].0);
    assert!((ROUND_TRIP * 4..=ROUND_TRIP * 12).contains(&startup), "{startup}");
    // Section 4.3.3: about as long as the queue from startup takes to drain.
    let drain = path.modes[2].0.since(path.modes[1].0);
    assert!((ROUND_TRIP..=ROUND_TRIP * 6).contains(&drain), "{drain}");
    let rate = path.bbr.estimate().octets_per_second(SEGMENT, GAIN_ONE) as f64;
    let line = (RATE * u64::from(SEGMENT)) as f64;
    assert!(
        (rate / line - 1.0).abs() < 0.02,
        "the estimate is {rate} octets a second, the rate of the link {line}"
    );
}

/// At most two bandwidth-delay products are in flight, and one of eight phases probes for a quarter more
/// bandwidth. draft-cardwell-iccrg-bbr-congestion-control-00, sections 4.2.3.2 and 4.3.4.
#[test]
fn cruising_uses_the_link_with_a_short_queue() {
    let mut path = Path::new();
    path.run(3, |_| ());
    let (mut max, mut sum, mut looks) = (0, 0.0, 0.0);
    path.run(9, |path| {
        max = max.max(path.flight.len() as u32);
        sum += path.queue();
        looks += 1.0;
    });
    assert!((BDP..=2 * BDP + 5).contains(&max), "{max} segments in flight");
    assert!(sum / looks < f64::from(BDP) / 4.0, "on average {} segments are queued", sum / looks);
    let used = looks / (6.0 * RATE as f64);
    assert!(used > 0.97, "the share of the rate that is used: {used}");
}

/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.5: every ten seconds BBR keeps little in
/// flight for 200 ms to measure the minimum round-trip time.
#[test]
fn round_trip_is_probed_every_ten_seconds() {
    let mut path = Path::new();
    let (mut min, mut probed) = (u32::MAX, Vec::new());
    path.run(35, |path| {
        if path.bbr.mode == Mode::ProbeRoundTrip {
            min = min.min(path.flight.len() as u32);
            probed.push(path.bbr.min_rtt.rtt.unwrap_or_default());
        }
    });
    let probes = path.modes.windows(2).filter(|pair| pair[0].1 == Mode::ProbeRoundTrip);
    let probes: Vec<(Time, Duration)> = probes.map(|pair| (pair[0].0, pair[1].0.since(pair[0].0))).collect();
    assert_eq!(probes.len(), 3, "{:?}", path.modes);
    for (at, length) in &probes {
        assert!((PROBE_RTT..PROBE_RTT + ROUND_TRIP * 4).contains(length), "{length} at {at}");
    }
    for pair in probes.windows(2) {
        let apart = pair[1].0.since(pair[0].0);
        assert!((RTT_LIFETIME..RTT_LIFETIME + Duration::from_millis(500)).contains(&apart), "{apart}");
    }
    assert!(min <= 4, "{min} segments are in flight at the least: BBRMinPipeCwnd");
    let seen = probed.last().copied().unwrap_or_default();
    assert!(seen <= ROUND_TRIP + Duration::from_millis(1), "{seen}");
}
