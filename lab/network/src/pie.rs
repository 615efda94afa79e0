//! PIE: drops or marks arriving packets with a probability that keeps the delay at a target. RFC 8033, as in
//! Linux.

use std::collections::VecDeque;

use hol_base::{Duration, Rng, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::codel::{QueuedPacket, pop_front};
use crate::tap::TapEvent;
use crate::transit::PacketInTransit;

/// PIE; defaults of RFC 8033 sections 4.1 and 4.2 and of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PieSpec {
    /// Target queueing delay (`QDELAY_REF`). Default 15 ms.
    pub target: Duration,
    /// Interval of probability updates (`T_UPDATE`; `tc`: `tupdate`). Default 15 ms.
    pub update: Duration,
    /// Weight of the delay's deviation from the target, in 1/16 Hz as in `tc`. Default 2.
    pub alpha: u8,
    /// Weight of the delay's change, in 1/16 Hz. Default 20.
    pub beta: u8,
    /// Mark ECN-capable packets instead of dropping, up to a probability of 10 %. Default no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
}

impl Default for PieSpec {
    fn default() -> Self {
        let fifteen = Duration::from_millis(15);
        Self { target: fifteen, update: fifteen, alpha: 2, beta: 20, ecn: false }
    }
}

impl PieSpec {
    /// Maximum of `alpha` and `beta` in `tc`.
    const MAX_GAIN: u8 = 32;

    /// Returns a description of invalid parameters, with a remedy; `None` if they are valid.
    pub(crate) fn problem(self) -> Option<&'static str> {
        if self.target == Duration::ZERO {
            return Some("`target` is 0, so every packet exceeds it; raise it");
        }
        if self.update < Duration::from_millis(1) {
            return Some("`update` is below 1ms; the usual value is 15ms");
        }
        (self.alpha.max(self.beta) > Self::MAX_GAIN)
            .then_some("`alpha` or `beta` exceeds the maximum of 32 (in units of 1/16 per second); lower it")
    }
}

/// The control state of PIE. RFC 8033 section 4: `drop_prob`, `accu_prob`, `burst_allowance`, `current_qdelay`,
/// `qdelay_old`.
#[derive(Debug)]
struct Pie {
    spec: PieSpec,
    drop_prob: f64,
    /// Sum of `drop_prob` over all packets since the last drop.
    accu_prob: f64,
    burst_allowance: Duration,
    /// Delay of the last dequeued packet; zero if the queue was empty afterwards.
    qdelay: Duration,
    qdelay_old: Duration,
    last_departure: Option<Time>,
    next_update: Time,
    rng: Rng,
}

impl Pie {
    /// Burst allowance: how long a burst may last before packets are dropped (RFC 8033 section 4.4, `MAX_BURST`).
    const MAX_BURST: Duration = Duration::from_millis(150);
    /// The drop probability above which packets are dropped even if they are ECN-capable (RFC 8033 section 5.1,
    /// `mark_ecnth`).
    const MAX_MARKING_PROBABILITY: f64 = 0.1;
    /// The probability at which Linux's number overflows: it has 64 bits, of which 56 are the fraction (`MAX_PROB`).
    const PROBABILITY_OVERFLOW: f64 = 256.0;

    fn new(spec: PieSpec, rng: Rng) -> Self {
        Self {
            spec,
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: Self::MAX_BURST,
            qdelay: Duration::ZERO,
            qdelay_old: Duration::ZERO,
            last_departure: None,
            next_update: Time::ZERO + spec.update,
            rng,
        }
    }

    /// Returns whether to drop or mark an arriving packet; `is_short`: whether fewer octets are queued than in two of
    /// the longest packets. RFC 8033 section 4.1; drops are spread as in section 5.4.
    fn drops_or_marks(&mut self, is_short: bool) -> bool {
        let is_acceptable = self.qdelay < self.spec.target / 2 && self.drop_prob < 0.2;
        if self.burst_allowance > Duration::ZERO || is_acceptable || is_short {
            return false;
        }
        self.accu_prob = if self.drop_prob == 0.0 { 0.0 } else { self.accu_prob + self.drop_prob };
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 {
            // Linux resets the sum only when a packet is dropped, so packets after a marked one are marked or
            // dropped, too (`pie_drop_early`).
            return true;
        }
        let is_drawn = self.rng.chance(self.drop_prob);
        if is_drawn {
            self.accu_prob = 0.0;
        }
        is_drawn
    }

    /// Handles the departure of a packet that arrived at `queued_at`; its delay is the new sample of the delay (RFC 8033
    /// section 4.3). As in Linux, the time between packets, not between updates, ends a burst.
    fn record_departure(&mut self, now: Time, queued_at: Time, is_last: bool) {
        self.qdelay = if is_last { Duration::ZERO } else { now.since(queued_at) };
        if let Some(before) = self.last_departure.replace(now) {
            self.burst_allowance = self.burst_allowance.saturating_sub(now.since(before));
        }
    }

    /// Performs the probability updates that were due before `now`; `is_empty`: whether the queue is empty.
    fn catch_up(&mut self, now: Time, is_empty: bool) {
        while self.next_update <= now {
            if is_empty && self.is_at_rest() {
                let updates = now.since(self.next_update).as_nanos() / self.spec.update.as_nanos();
                self.next_update += self.spec.update * updates;
            }
            self.update(is_empty);
            self.next_update += self.spec.update;
        }
    }

    /// Returns whether further updates would change nothing while the queue is empty.
    fn is_at_rest(&self) -> bool {
        self.drop_prob == 0.0 && self.qdelay == Duration::ZERO && self.qdelay_old == Duration::ZERO
    }

    /// Updates the probability (RFC 8033 section 4.2), caps the step (section 5.5) and resets the burst allowance
    /// (section 4.4). The larger step above 250 ms is an addition of Linux (`pie_calculate_probability`). As in Linux
    /// the probability is not limited to 1: after a long overload it takes long to fall below 1, and until then only
    /// two packets remain in the queue.
    fn update(&mut self, is_empty: bool) {
        let PieSpec { target, alpha, beta, .. } = self.spec;
        let [alpha, beta] = [alpha, beta].map(|sixteenths| f64::from(sixteenths) / 16.0);
        let [now, before, target] = [self.qdelay, self.qdelay_old, target].map(Duration::as_secs_f64);
        let mut change = damping(self.drop_prob) * (alpha * (now - target) + beta * (now - before));
        if self.drop_prob >= 0.1 {
            change = change.min(0.02);
        }
        if now > 0.25 {
            change += 0.02;
        }
        self.drop_prob = (self.drop_prob + change).max(0.0);
        if self.drop_prob >= Self::PROBABILITY_OVERFLOW {
            self.drop_prob = 1.0;
        }
        if is_empty && now == 0.0 && before == 0.0 {
            // Linux: 63/64; the RFC has 0.98.
            self.drop_prob *= 63.0 / 64.0;
        }
        if now.max(before) < target / 2.0 && self.drop_prob == 0.0 {
            (self.accu_prob, self.burst_allowance, self.last_departure) = (0.0, Self::MAX_BURST, None);
        }
        self.qdelay_old = self.qdelay;
    }
}

/// Returns the factor that reduces the step of the probability while the probability is small. RFC 8033 section 4.2.
fn damping(drop_prob: f64) -> f64 {
    let steps: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    steps.iter().find(|(below, _)| drop_prob < *below).map_or(1.0, |(_, divisor)| 1.0 / divisor)
}

/// A queue whose packets PIE drops or marks.
#[derive(Debug)]
pub(crate) struct PieQueue {
    pie: Pie,
    queued: VecDeque<QueuedPacket>,
    /// Number of queued octets, including link-layer headers.
    octets: u64,
    overhead: u64,
    /// No packet is dropped while fewer octets than this are queued: the length of two of the longest packets.
    min_backlog: u64,
    marked: u64,
}

impl PieQueue {
    /// Creates a queue. A link-layer header has `overhead` octets, and the longest packet has
    /// `longest_packet` octets. Draws derive from `seed`.
    pub(crate) fn new(spec: PieSpec, overhead: u64, longest_packet: u64, seed: Seed) -> Self {
        let pie = Pie::new(spec, seed.rng());
        Self { pie, queued: VecDeque::new(), octets: 0, overhead, min_backlog: 2 * longest_packet, marked: 0 }
    }

    /// Returns the number of packets marked so far.
    pub(crate) fn marked_packets(&self) -> u64 {
        self.marked
    }

    /// Returns the number of queued packets, and of their octets without link-layer headers.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        (self.queued.len() as u64, self.octets - self.queued.len() as u64 * self.overhead)
    }

    /// Queues an arriving packet unless there is no room or it is dropped early.
    pub(crate) fn push(
        &mut self,
        now: Time,
        mut transit: PacketInTransit,
        has_room: bool,
        mut lose: impl FnMut(PacketInTransit, TapEvent),
    ) {
        self.pie.catch_up(now, self.queued.is_empty());
        if !has_room {
            self.pie.accu_prob = 0.0;
            lose(transit, TapEvent::QueueFull);
        } else if self.pie.drops_or_marks(self.octets < self.min_backlog)
            && !self.mark_if_allowed(&mut transit)
        {
            self.pie.accu_prob = 0.0;
            lose(transit, TapEvent::DroppedEarly);
        } else {
            self.octets += transit.length() + self.overhead;
            self.queued.push_back(QueuedPacket { queued_at: now, transit });
        }
    }

    /// Marks the packet instead of dropping it, if allowed. RFC 8033 section 5.1.
    fn mark_if_allowed(&mut self, transit: &mut PacketInTransit) -> bool {
        let Pie { spec, drop_prob, .. } = self.pie;
        let marked = spec.ecn && drop_prob <= Pie::MAX_MARKING_PROBABILITY && transit.packet.ecn.mark();
        self.marked += u64::from(marked);
        marked
    }

    /// Returns the packet to transmit now.
    pub(crate) fn pop(&mut self, now: Time) -> Option<PacketInTransit> {
        let Self { pie, queued: waiting, octets, overhead, .. } = self;
        pie.catch_up(now, waiting.is_empty());
        let (QueuedPacket { queued_at, transit }, behind) = pop_front(waiting, octets, *overhead)?;
        pie.record_departure(now, queued_at, behind == 0);
        Some(transit)
    }

    /// Removes and returns all queued packets.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = PacketInTransit> {
        self.octets = 0;
        std::mem::take(&mut self.queued).into_iter().map(|waiting| waiting.transit)
    }
}

#[cfg(test)]
mod tests {
    use hol_wire::Ecn;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn transit(ecn: Ecn) -> PacketInTransit {
        crate::transit::tests::transit(1250, ecn)
    }

    fn queue(spec: PieSpec) -> PieQueue {
        PieQueue::new(spec, 0, 1500, Seed(4))
    }

    /// Queues `in_10` packets per 10 ms, of which 10 can leave in that time; returns the times of the drops
    /// in ms, and the delay of the last packet.
    fn overload(queue: &mut PieQueue, ecn: Ecn, in_10: u64, ms: u64) -> (Vec<u64>, Duration) {
        let (mut dropped, mut due) = (Vec::new(), 0);
        for at in 0..ms {
            let now = Time::ZERO + MS * at;
            due += in_10;
            while due >= 10 {
                due -= 10;
                queue.push(now, transit(ecn), true, |_, event| {
                    assert_eq!(event, TapEvent::DroppedEarly);
                    dropped.push(at);
                });
            }
            queue.pop(now);
        }
        (dropped, queue.pie.qdelay)
    }

    fn share(dropped: &[u64], times: std::ops::Range<u64>, packets: f64) -> f64 {
        dropped.iter().filter(|at| times.contains(at)).count() as f64 / packets
    }

    #[test]
    fn rfc8033_4_4_short_burst_passes_without_drops() {
        let (dropped, _) = overload(&mut queue(PieSpec::default()), Ecn::default(), 20, 2000);
        assert!(dropped[0] > 150, "{:?}", &dropped[..3]);
    }

    #[test]
    fn rfc8033_4_2_delay_reaches_the_target_and_the_excess_is_dropped() {
        for (in_10, too_much) in [(11, 1.0 / 11.0), (13, 3.0 / 13.0)] {
            let mut queue = queue(PieSpec::default());
            let (dropped, wait) = overload(&mut queue, Ecn::default(), in_10, 60_000);
            let share = share(&dropped, 30_000..60_000, 3000.0 * in_10 as f64);
            assert!((share / too_much - 1.0).abs() < 0.02, "{in_10}: {share} of {too_much}");
            assert!((8..=25).contains(&(wait.as_nanos() / 1_000_000)), "{in_10}: {wait}");
        }
    }

    #[test]
    fn rfc8033_4_2_small_probabilities_change_in_small_steps() {
        let divisors = [5e-7, 5e-6, 5e-5, 5e-4, 5e-3, 5e-2, 0.5].map(|prob| 1.0 / damping(prob));
        assert_eq!(divisors, [2048.0, 512.0, 128.0, 32.0, 8.0, 2.0, 1.0]);
    }

    #[test]
    fn rfc8033_4_1_nothing_is_dropped_below_two_packets() {
        let mut queue = queue(PieSpec::default());
        (queue.pie.drop_prob, queue.pie.burst_allowance, queue.pie.qdelay) = (1.0, Duration::ZERO, MS * 100);
        let mut dropped = 0;
        for _ in 0..5 {
            queue.push(Time::ZERO, transit(Ecn::default()), true, |_, _| dropped += 1);
        }
        assert_eq!((queue.backlog().0, dropped), (3, 2), "2500 octets are below two of 1500");
    }

    #[test]
    fn rfc8033_5_4_drops_are_spread_evenly() {
        let mut pie = queue(PieSpec::default()).pie;
        (pie.drop_prob, pie.burst_allowance, pie.qdelay) = (0.125, Duration::ZERO, MS * 100);
        let mut drops_next = || {
            let dropped = pie.drops_or_marks(false);
            if dropped {
                pie.accu_prob = 0.0;
            }
            dropped
        };
        let dropped_numbers: Vec<usize> = (0..100_000).filter(|_| drops_next()).collect();
        let gaps: Vec<usize> = dropped_numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps.iter().min(), Some(&7), "no drop before the probabilities add up to 0.85");
        assert!(gaps.iter().max() <= Some(&68), "a drop at 8.5 at the latest");
    }

    /// If the probability stopped at 1, PIE would recover from a long queue within a second and keep a hundred
    /// packets, where Linux keeps two.
    #[test]
    fn linux_probability_exceeds_one_after_a_long_overload() {
        let mut queue = queue(PieSpec::default());
        // A queue of 5 s, whose probability grows by 2 % and more every 15 ms.
        for _ in 0..5000 {
            queue.push(Time::ZERO, transit(Ecn::default()), true, |_, _| panic!("a burst passes"));
        }
        for at in 0..5000 {
            queue.pop(Time::ZERO + MS * at);
        }
        // 4 % in each of the 316 updates before the delay is 250 ms, except the first ones.
        assert!((11.0..13.0).contains(&queue.pie.drop_prob), "{}", queue.pie.drop_prob);
        // While the queue is empty the probability falls by a 64th with each update, so after a second it is
        // still above 1.
        queue.push(Time::ZERO + MS * 6000, transit(Ecn::default()), true, |_, _| ());
        assert!((1.0..5.0).contains(&queue.pie.drop_prob), "{}", queue.pie.drop_prob);
    }

    #[test]
    fn rfc8033_5_1_ecn_capable_packets_are_marked_at_low_probability() {
        let spec = PieSpec { ecn: true, ..PieSpec::default() };
        let mut slow = queue(spec);
        let (dropped, _) = overload(&mut slow, Ecn::Capable, 10, 10_000);
        assert!(dropped.is_empty());
        let mut heavy = queue(spec);
        let (dropped, _) = overload(&mut heavy, Ecn::Capable, 11, 10_000);
        assert!(
            heavy.marked_packets() > 10 && dropped.len() > 10,
            "{} {}",
            heavy.marked_packets(),
            dropped.len()
        );
        let mut deaf = queue(PieSpec::default());
        overload(&mut deaf, Ecn::Capable, 20, 10_000);
        assert_eq!(deaf.marked_packets(), 0, "only if it is configured to");
    }

    #[test]
    fn state_is_reset_after_a_long_idle_period() {
        let mut queue = queue(PieSpec::default());
        overload(&mut queue, Ecn::default(), 20, 5000);
        while queue.pop(Time::ZERO + MS * 5000).is_some() {}
        assert!(queue.pie.drop_prob > 0.1);
        queue.push(
            Time::ZERO + Duration::from_secs(10_000_000_000),
            transit(Ecn::default()),
            true,
            |_, _| (),
        );
        assert_eq!((queue.pie.drop_prob, queue.pie.burst_allowance), (0.0, Pie::MAX_BURST));
        assert!(queue.pie.next_update > Time::ZERO + Duration::from_secs(10_000_000_000));
    }

    #[test]
    fn invalid_parameters_are_described() {
        let wrong = [
            PieSpec { target: Duration::ZERO, ..PieSpec::default() },
            PieSpec { update: Duration::from_micros(900), ..PieSpec::default() },
            PieSpec { alpha: 33, ..PieSpec::default() },
            PieSpec { beta: 33, ..PieSpec::default() },
        ];
        assert!(wrong.into_iter().all(|spec| spec.problem().is_some()));
        assert_eq!(PieSpec::default().problem(), None);
    }
}
