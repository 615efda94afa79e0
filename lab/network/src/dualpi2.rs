//! DualPI2: a low-latency queue for scalable flows (L4S) beside one for classic flows, coupled so that a flow of either kind
//! gets the same rate. RFC 9332, as in Linux (`net/sched/sch_dualpi2.c`).

use std::collections::VecDeque;

use hol_base::{Duration, Rng, Seed, Time};
use hol_wire::Ecn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::codel::{QueuedPacket, pop_front};
use crate::transit::PacketInTransit;

/// DualPI2 (RFC 9332); defaults of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DualPi2Spec {
    /// Target delay of the classic queue. Default 15 ms.
    pub target: Duration,
    /// Interval of probability updates (`tc`: `tupdate`). Default 16 ms.
    pub update: Duration,
    /// Weight of the delay's deviation from the target, in Hz. Default 41/256.
    pub alpha: f64,
    /// Weight of the delay's change, in Hz. Default 819/256.
    pub beta: f64,
    /// Mark packets that wait longer than this in the low-latency queue (`tc`: `step_thresh`). Default 1 ms.
    pub step: Duration,
    /// Coupling factor between classic drops and low-latency marks (`tc`: `coupling_factor`, RFC 9332: k). Default 2.
    pub coupling: u8,
    /// Minimum share of the link's rate for the classic queue while both queues hold packets, in percent. Default 10.
    pub classic_protection: u8,
    /// Whether packets with ECT(0) take the low-latency queue too, as DCTCP needs (`tc`: `any_ect`). Default false.
    pub any_ect: bool,
}

impl Default for DualPi2Spec {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: 41.0 / 256.0,
            beta: 819.0 / 256.0,
            step: Duration::from_millis(1),
            coupling: 2,
            classic_protection: 10,
            any_ect: false,
        }
    }
}

impl DualPi2Spec {
    /// Returns a description of invalid parameters, with a remedy; `None` if they are valid.
    pub(crate) fn problem(self) -> Option<&'static str> {
        let gains = [self.alpha, self.beta];
        match self {
            Self { target: Duration::ZERO, .. } => {
                Some("`target` is 0, which every packet exceeds; raise it, for example to the usual 15ms")
            }
            Self { update, .. } if update < Duration::from_millis(1) => {
                Some("`update` is below 1ms; raise it, for example to the usual 16ms")
            }
            _ if !gains.iter().all(|gain| (1.0 / 256.0..=1e6).contains(gain)) => Some(
                "`alpha` and `beta` must be between 1/256 and 1000000 Hz; the usual values are 0.16 and 3.2",
            ),
            Self { coupling: 0, .. } => Some(
                "`coupling` must be at least 1; with 2 the flows of both queues have about the same rate",
            ),
            Self { classic_protection: 101.., .. } => {
                Some("`classic_protection` must be a percentage, at most 100")
            }
            _ => None,
        }
    }
}

/// One of the two queues, as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// The low-latency queue, for packets with ECT(1) or CE and, if so configured, ECT(0).
    Low,
    /// The classic queue, for all other packets.
    Classic,
}

impl Class {
    /// Returns the queue for a packet with this ECN codepoint. With `any_ect`, ECT(0) is treated like ECT(1). RFC 9332
    /// section 2.3; Linux: `dualpi2_skb_classify`.
    const fn from_ecn(ecn: Ecn, any_ect: bool) -> Self {
        match ecn {
            Ecn::Capable1 | Ecn::Congested => Self::Low,
            Ecn::Capable if any_ect => Self::Low,
            Ecn::NotCapable | Ecn::Capable => Self::Classic,
        }
    }
}

/// What happens to a packet when it leaves its queue.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Pass,
    Mark,
    Drop,
}

/// The packets in the two queues, by [`Class`].
#[derive(Debug, Default)]
struct Queues {
    packets: [VecDeque<QueuedPacket>; 2],
    /// Number of octets in each of the two queues, including link-layer headers.
    octets: [u64; 2],
}

impl Queues {
    fn is_empty(&self, class: Class) -> bool {
        self.packets[class as usize].is_empty()
    }

    /// Returns for how long the packet at the head of a queue has waited. Linux: `get_queue_delays`.
    fn delay(&self, class: Class, now: Time) -> Duration {
        self.packets[class as usize].front().map_or(Duration::ZERO, |head| now.since(head.queued_at))
    }
}

/// The two queues of DualPI2, the probability that couples them, and the scheduler that chooses between them.
#[derive(Debug)]
pub(crate) struct DualPi2Queue {
    spec: DualPi2Spec,
    queues: Queues,
    overhead: u64,
    /// Length of the longest packet, in octets.
    longest_packet: u64,
    /// The base probability p′ of RFC 9332 section 2.4. The classic queue drops packets with the probability p′².
    probability: f64,
    /// The longer one of the delays of both queues, at the last update of the probability.
    last_delay: Duration,
    next_update: Time,
    /// The amount by which the classic queue is behind its share, in octets times percent. While it is above zero, the
    /// classic queue is served first.
    credit: i64,
    marked: u64,
    rng: Rng,
}

impl DualPi2Queue {
    /// Creates the queues. A link-layer header has `overhead` octets, and the longest packet has `longest_packet`
    /// octets. Random numbers derive from `seed`.
    pub(crate) fn new(spec: DualPi2Spec, overhead: u64, longest_packet: u64, seed: Seed) -> Self {
        let mut queue = Self {
            spec,
            queues: Queues::default(),
            overhead,
            longest_packet,
            probability: 0.0,
            last_delay: Duration::ZERO,
            next_update: Time::ZERO + spec.update,
            credit: 0,
            marked: 0,
            rng: seed.rng(),
        };
        queue.reset_credit();
        queue
    }

    /// Returns the number of packets marked so far.
    pub(crate) fn marked_packets(&self) -> u64 {
        self.marked
    }

    /// Returns the number of queued packets, and the number of their octets without link-layer headers.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        let packets: u64 = self.queues.packets.iter().map(|queue| queue.len() as u64).sum();
        (packets, self.octets() - packets * self.overhead)
    }

    fn octets(&self) -> u64 {
        self.queues.octets.iter().sum()
    }

    /// Queues an arriving packet. `is_idle`: whether the link has nothing to send.
    pub(crate) fn push(&mut self, now: Time, transit: PacketInTransit, is_idle: bool) {
        self.catch_up(now);
        if is_idle {
            // An idle link has polled both queues and found them empty.
            self.reset_credit();
        }
        let class = Class::from_ecn(transit.packet.ecn, self.spec.any_ect) as usize;
        self.queues.octets[class] += transit.length() + self.overhead;
        self.queues.packets[class].push_back(QueuedPacket { queued_at: now, transit });
    }

    /// Returns the packet to transmit now; passes packets that are dropped before it to `lose`. Linux:
    /// `__dualpi2_qdisc_dequeue`.
    pub(crate) fn pop(
        &mut self,
        now: Time,
        mut lose: impl FnMut(PacketInTransit),
    ) -> Option<PacketInTransit> {
        self.catch_up(now);
        loop {
            let Some((class, QueuedPacket { queued_at, mut transit }, change)) = self.dequeue() else {
                self.reset_credit();
                return None;
            };
            let mut action = self.decide(class, transit.packet.ecn);
            if action == Action::Pass && class == Class::Low && now.since(queued_at) > self.spec.step {
                action = Action::Mark;
            }
            match action {
                Action::Drop => {
                    lose(transit);
                    continue;
                }
                Action::Mark => self.marked += u64::from(transit.packet.ecn.mark()),
                Action::Pass => {}
            }
            self.credit += change;
            return Some(transit);
        }
    }

    /// Removes the next packet. Returns its queue, the packet, and by how much the credit changes if the packet is
    /// sent. RFC 9332 section 4.2.2; Linux: `dequeue_packet`.
    fn dequeue(&mut self) -> Option<(Class, QueuedPacket, i64)> {
        let [has_low, has_classic] = [Class::Low, Class::Classic].map(|class| !self.queues.is_empty(class));
        let class = if has_low && (!has_classic || self.credit <= 0) { Class::Low } else { Class::Classic };
        let Queues { packets, octets } = &mut self.queues;
        let (waiting, _) =
            pop_front(&mut packets[class as usize], &mut octets[class as usize], self.overhead)?;
        let protection = i64::from(self.spec.classic_protection);
        let share = match class {
            Class::Low if has_classic => protection,
            Class::Classic if has_low => protection - 100,
            _ => 0,
        };
        let change = share * (waiting.transit.length() + self.overhead) as i64;
        Some((class, waiting, change))
    }

    /// Resets the credit as `dualpi2_reset_c_protection` of Linux does. Afterwards the low-latency queue is served
    /// first, unless the classic queue has the greater share.
    fn reset_credit(&mut self) {
        self.credit = self.longest_packet as i64 * (2 * i64::from(self.spec.classic_protection) - 100);
    }

    /// Decides whether a packet that has left its queue is passed, marked or dropped. RFC 9332 sections 2.4 and
    /// 4.2.3; Linux: `must_drop`.
    fn decide(&mut self, class: Class, ecn: Ecn) -> Action {
        if self.octets() < 2 * self.longest_packet {
            return Action::Pass;
        }
        let coupled = self.probability * f64::from(self.spec.coupling);
        let is_overloaded = coupled > 1.0;
        match class {
            Class::Classic if !self.draws_classic_drop() => Action::Pass,
            Class::Classic if is_overloaded || ecn == Ecn::NotCapable => Action::Drop,
            Class::Classic => Action::Mark,
            Class::Low if is_overloaded && self.draws_classic_drop() => Action::Drop,
            Class::Low if is_overloaded || self.rng.chance(coupled) => Action::Mark,
            Class::Low => Action::Pass,
        }
    }

    /// Draws whether the classic queue drops a packet. The probability is the square of the base probability: two
    /// draws must both succeed.
    fn draws_classic_drop(&mut self) -> bool {
        let Self { rng, probability, .. } = self;
        rng.chance(*probability) && rng.chance(*probability)
    }

    /// Performs the updates of the probability that are due by `now`. Between two events the queues do not change.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            if self.is_at_rest() {
                let updates = now.since(self.next_update).as_nanos() / self.spec.update.as_nanos();
                self.next_update += self.spec.update * updates;
            }
            self.update(self.next_update);
            self.next_update += self.spec.update;
        }
    }

    /// Returns whether updates of the probability have no effect until the next packet arrives.
    fn is_at_rest(&self) -> bool {
        let is_empty = [Class::Low, Class::Classic].iter().all(|class| self.queues.is_empty(*class));
        is_empty && self.probability == 0.0 && self.last_delay == Duration::ZERO
    }

    /// Updates the base probability. RFC 9332 appendix A.1; Linux: `calculate_probability`.
    fn update(&mut self, now: Time) {
        let DualPi2Spec { target, alpha, beta, .. } = self.spec;
        let delay = [Class::Low, Class::Classic].map(|class| self.queues.delay(class, now)).into_iter().max();
        let before = std::mem::replace(&mut self.last_delay, delay.unwrap_or_default());
        let [delay, before, target] = [self.last_delay, before, target].map(Duration::as_secs_f64);
        let change = alpha * (delay - target) + beta * (delay - before);
        self.probability = (self.probability + change).clamp(0.0, 1.0);
    }

    /// Removes and returns all queued packets.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = PacketInTransit> {
        std::mem::take(&mut self.queues).packets.into_iter().flatten().map(|waiting| waiting.transit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn transit(ecn: Ecn) -> PacketInTransit {
        crate::transit::tests::transit(1250, ecn)
    }

    fn queue(spec: DualPi2Spec) -> DualPi2Queue {
        DualPi2Queue::new(spec, 0, 1500, Seed(4))
    }

    #[test]
    fn rfc9332_2_3_ect1_and_ce_take_the_low_latency_queue() {
        let codepoints = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable, Ecn::Congested];
        let classes = |any_ect| codepoints.map(|ecn| Class::from_ecn(ecn, any_ect));
        assert_eq!(classes(false), [Class::Classic, Class::Low, Class::Classic, Class::Low]);
        // linux/pkt_sched.h, `TC_DUALPI2_ECN_MASK_ANY_ECT`.
        assert_eq!(classes(true), [Class::Classic, Class::Low, Class::Low, Class::Low]);
    }

    #[test]
    fn rfc9332_2_4_low_latency_marks_k_times_p_and_classic_drops_p_squared() {
        let mut queue = queue(DualPi2Spec { step: Duration::from_secs(10), ..DualPi2Spec::default() });
        (0..3).for_each(|_| queue.push(Time::ZERO, transit(Ecn::NotCapable), false));
        queue.probability = 0.2;
        let draws = 100_000;
        let mut share = |class, ecn, action| {
            (0..draws).filter(|_| queue.decide(class, ecn) == action).count() as f64 / f64::from(draws)
        };
        assert!((share(Class::Low, Ecn::Capable1, Action::Mark) - 0.4).abs() < 0.01);
        assert!((share(Class::Classic, Ecn::NotCapable, Action::Drop) - 0.04).abs() < 0.005);
        assert!((share(Class::Classic, Ecn::Capable, Action::Mark) - 0.04).abs() < 0.005);
        assert_eq!(share(Class::Low, Ecn::Capable1, Action::Drop), 0.0);
    }

    #[test]
    fn rfc9332_4_2_3_both_queues_drop_instead_of_marking_in_overload() {
        let mut queue = queue(DualPi2Spec::default());
        (0..3).for_each(|_| queue.push(Time::ZERO, transit(Ecn::NotCapable), false));
        queue.probability = 0.6;
        let actions: Vec<Action> = (0..1000).map(|_| queue.decide(Class::Low, Ecn::Capable1)).collect();
        let dropped = actions.iter().filter(|action| **action == Action::Drop).count();
        assert!((300..420).contains(&dropped), "{dropped} of 360 expected");
        assert_eq!(
            actions.iter().filter(|action| **action == Action::Pass).count(),
            0,
            "all others are marked"
        );
        assert!((0..1000).all(|_| queue.decide(Class::Classic, Ecn::Capable) != Action::Mark));
    }

    #[test]
    fn linux_must_drop_drops_nothing_below_two_packets() {
        let mut queue = queue(DualPi2Spec::default());
        queue.probability = 1.0;
        queue.push(Time::ZERO, transit(Ecn::NotCapable), false);
        queue.push(Time::ZERO, transit(Ecn::NotCapable), false);
        assert_eq!(
            queue.decide(Class::Classic, Ecn::NotCapable),
            Action::Pass,
            "2500 octets are below two of 1500"
        );
        queue.push(Time::ZERO, transit(Ecn::NotCapable), false);
        assert_eq!(queue.decide(Class::Classic, Ecn::NotCapable), Action::Drop);
    }

    #[test]
    fn linux_do_step_aqm_marks_packets_that_wait_longer_than_the_step() {
        for (wait, marked) in [(MS, Ecn::Capable1), (MS + Duration::from_nanos(1), Ecn::Congested)] {
            let mut queue = queue(DualPi2Spec::default());
            queue.push(Time::ZERO, transit(Ecn::Capable1), true);
            let left = queue.pop(Time::ZERO + wait, |_| ()).expect("a packet waits");
            assert_eq!(left.packet.ecn, marked);
        }
        let mut queue = queue(DualPi2Spec::default());
        queue.push(Time::ZERO, transit(Ecn::Capable), true);
        let left = queue.pop(Time::ZERO + MS * 10, |_| ()).expect("a packet waits");
        assert_eq!(left.packet.ecn, Ecn::Capable, "the step is for the other queue");
    }

    #[test]
    fn rfc9332_4_2_2_the_classic_queue_keeps_its_share() {
        for protection in [10, 50, 100] {
            let spec = DualPi2Spec { classic_protection: protection, ..DualPi2Spec::default() };
            let mut queue = queue(spec);
            for _ in 0..2000 {
                queue.push(Time::ZERO, transit(Ecn::Capable1), false);
                queue.push(Time::ZERO, transit(Ecn::NotCapable), false);
            }
            let left = std::iter::from_fn(|| queue.pop(Time::ZERO, |_| ())).take(1000);
            let classic = left.filter(|transit| transit.packet.ecn == Ecn::NotCapable).count();
            assert!(classic.abs_diff(10 * usize::from(protection)) <= 10, "{protection}: {classic} of 1000");
        }
    }

    #[test]
    fn rfc9332_a_1_classic_delay_reaches_the_target_and_the_excess_is_dropped() {
        let mut queue = queue(DualPi2Spec::default());
        let (mut waits, mut dropped, mut due) = (Vec::new(), 0, 0);
        for at in 0..60_000 {
            let now = Time::ZERO + MS * at;
            due += 11;
            while due >= 10 {
                due -= 10;
                queue.push(now, transit(Ecn::NotCapable), false);
            }
            waits.push(queue.queues.delay(Class::Classic, now));
            queue.pop(now, |_| dropped += 1);
        }
        let late = &waits[30_000..];
        let mean = late.iter().map(|wait| wait.as_secs_f64()).sum::<f64>() / late.len() as f64;
        assert!((0.012..0.018).contains(&mean), "mean delay {mean} s, target 15 ms");
        assert!(
            (5950..6000).contains(&dropped),
            "dropped {dropped}; 6,000 packets exceed the rate, and some are still queued"
        );
    }

    #[test]
    fn state_is_reset_after_a_long_idle_period() {
        let mut queue = queue(DualPi2Spec::default());
        for now in (0..5000).map(|at| Time::ZERO + MS * at) {
            queue.push(now, transit(Ecn::NotCapable), false);
            queue.push(now, transit(Ecn::Capable1), false);
            queue.pop(now, |_| ());
        }
        while queue.pop(Time::ZERO + MS * 5000, |_| ()).is_some() {}
        assert!(queue.probability > 0.1);
        let late = Time::ZERO + Duration::from_secs(10_000_000_000);
        queue.push(late, transit(Ecn::default()), true);
        assert_eq!((queue.probability, queue.last_delay), (0.0, Duration::ZERO));
        assert!(queue.next_update > late);
    }

    #[test]
    fn invalid_parameters_are_described() {
        let wrong = [
            DualPi2Spec { target: Duration::ZERO, ..DualPi2Spec::default() },
            DualPi2Spec { update: Duration::from_micros(900), ..DualPi2Spec::default() },
            DualPi2Spec { alpha: 0.0, ..DualPi2Spec::default() },
            DualPi2Spec { beta: f64::NAN, ..DualPi2Spec::default() },
            DualPi2Spec { coupling: 0, ..DualPi2Spec::default() },
            DualPi2Spec { classic_protection: 101, ..DualPi2Spec::default() },
        ];
        assert!(wrong.into_iter().all(|spec| spec.problem().is_some()));
        assert_eq!(DualPi2Spec::default().problem(), None);
    }
}
