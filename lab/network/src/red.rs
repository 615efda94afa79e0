//! Random early detection: drops before the queue is full (Floyd and Jacobson 1993).

use hol_base::{BitRate, ByteCount, QueueLimit, Ratio, Rng, Seed, Time};
use hol_wire::Packet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::discipline::Discipline;

/// Random early detection; defaults of ns-2 without automatic tuning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedSpec {
    /// Average queue length below which no packet is dropped (ns-2: `thresh_`). Default 5 packets.
    pub min: QueueLimit,
    /// Average queue length from which all packets are dropped (ns-2: `maxthresh_`). Default 15 packets.
    pub max: QueueLimit,
    /// Weight of the newest sample in the average (ns-2: `q_weight_`). Default 0.002.
    pub weight: f64,
    /// Drop probability just below `max` (ns-2: 1/`linterm_`). Default 10 %.
    pub drop: Ratio,
    /// Above `max`, increase the probability linearly to 1 at twice `max`. Default no.
    pub gentle: bool,
    /// Typical packet size. While the queue is empty, the average decays by one step per transmission time of such a packet (ns-2: `mean_pktsize_`).
    /// Default 500 B.
    pub packet: ByteCount,
    /// Mark ECN-capable packets instead of dropping, even above `max` (ns-2: `setbit_`). Default no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
}

impl Default for RedSpec {
    fn default() -> Self {
        Self {
            min: QueueLimit::Packets(5),
            max: QueueLimit::Packets(15),
            weight: 0.002,
            drop: Ratio::new(0.1).expect("the constant is a probability"),
            gentle: false,
            packet: ByteCount(500),
            ecn: false,
        }
    }
}

impl RedSpec {
    /// Returns the thresholds if both are in packets or both in octets.
    fn thresholds(&self) -> Option<(u64, u64)> {
        match (self.min, self.max) {
            (QueueLimit::Packets(min), QueueLimit::Packets(max))
            | (QueueLimit::Bytes(min), QueueLimit::Bytes(max)) => Some((min, max)),
            _ => None,
        }
    }

    /// Returns a description of invalid parameters, with a remedy; `None` if they are valid.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        match self.thresholds() {
            None => Some("`min` and `max` have different units; give both in packets or both in octets"),
            Some((min, max)) if min >= max => Some("`min` is not below `max`; raise `max`"),
            _ if !(self.weight > 0.0 && self.weight <= 1.0) => Some("`weight` must be above 0 and at most 1"),
            _ if self.drop.is_zero() => Some("`drop` is 0%, so nothing is dropped early; raise it"),
            _ if self.packet.0 == 0 => Some("`packet` is 0B; give it the size of a typical packet"),
            _ => None,
        }
    }
}

/// Decides for each arriving packet whether to drop or mark it.
#[derive(Debug)]
pub(crate) struct Red {
    spec: RedSpec,
    min: f64,
    max: f64,
    average: f64,
    /// Packets since the last drop while the average was between the thresholds; `None` before the first of them, which is never
    /// dropped (Linux: `red_action`; ns-2: `old`).
    since_drop: Option<u32>,
    /// When the last packet arrived, so that an idle period is counted only once (Linux: `red_end_of_idle_period`;
    /// ns-2: `idle_`).
    last_arrival: Time,
    marked: u64,
    rng: Rng,
}

impl Red {
    /// Creates the state of an empty queue; draws derive from `seed`.
    pub(crate) fn new(discipline: Discipline, seed: Seed) -> Option<Self> {
        let Discipline::Red(spec) = discipline else { return None };
        let (min, max) = spec.thresholds().expect("the thresholds were checked with the topology");
        let (min, max) = (min as f64, max as f64);
        Some(Self {
            spec,
            min,
            max,
            average: 0.0,
            since_drop: None,
            last_arrival: Time::ZERO,
            marked: 0,
            rng: seed.rng(),
        })
    }

    /// Returns whether to drop or mark an arriving packet. It finds `packets` packets with `octets` octets
    /// queued, on a link of `rate` that has been idle since `free_at` or is busy until then.
    pub(crate) fn drops_or_marks(
        &mut self,
        now: Time,
        (packets, octets): (u64, u64),
        free_at: Time,
        rate: BitRate,
    ) -> bool {
        self.update_average(now, (packets, octets), free_at, rate);
        let probability = self.probability();
        if probability == 0.0 || probability == 1.0 {
            self.since_drop = None;
            return probability == 1.0;
        }
        let Some(since_drop) = self.since_drop else {
            self.since_drop = Some(0);
            return false;
        };
        // Section 7: makes the gaps between drops uniform instead of geometric.
        let spread = 1.0 - f64::from(since_drop) * probability;
        let dropped = spread <= probability || self.rng.chance(probability / spread);
        self.since_drop = Some(if dropped { 0 } else { since_drop + 1 });
        dropped
    }

    /// Updates the average queue length with a new sample, or lets it decay if the link was idle (Floyd and Jacobson
    /// 1993, section 4, figure 2). As in Linux (`red_calc_qavg`), the average also decays for an idle time shorter than
    /// one transmission.
    fn update_average(&mut self, now: Time, (packets, octets): (u64, u64), free_at: Time, rate: BitRate) {
        let idle = now.saturating_since(free_at.max(self.last_arrival));
        self.last_arrival = now;
        if packets == 0 && free_at < now {
            let step = rate.serialization_time(self.spec.packet.0, 0).0.as_secs_f64();
            self.average *= (1.0 - self.spec.weight).powf(idle.as_secs_f64() / step);
            return;
        }
        let queue = match self.spec.min {
            QueueLimit::Packets(_) => packets,
            QueueLimit::Bytes(_) => octets,
        };
        self.average += self.spec.weight * (queue as f64 - self.average);
    }

    /// Marks a packet with congestion instead of dropping it (RFC 3168 section 5), if `ecn` is on and the packet is
    /// ECN-capable; returns whether it did.
    pub(crate) fn mark_if_allowed(&mut self, packet: &mut Packet) -> bool {
        let marked = self.spec.ecn && packet.ecn.mark();
        self.marked += u64::from(marked);
        marked
    }

    /// Returns the number of packets marked so far.
    pub(crate) fn marked_packets(&self) -> u64 {
        self.marked
    }

    /// Returns the drop probability at the current average.
    fn probability(&self) -> f64 {
        let Self { min, max, average, .. } = *self;
        let max_probability = self.spec.drop.value();
        if average < min {
            0.0
        } else if average < max {
            max_probability * (average - min) / (max - min)
        } else if self.spec.gentle && average < 2.0 * max {
            max_probability + (1.0 - max_probability) * (average - max) / max
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use hol_wire::Ecn;

    use super::*;

    fn red(spec: RedSpec) -> Red {
        Red::new(Discipline::Red(spec), Seed(3)).unwrap()
    }

    /// Returns the share of dropped packets if all of them find `queue` packets queued.
    fn share(spec: RedSpec, queue: u64) -> f64 {
        let mut red = red(RedSpec { weight: 1.0, ..spec });
        let rate: BitRate = "1Mbit".parse().unwrap();
        let dropped =
            (0..20_000).filter(|_| red.drops_or_marks(Time::ZERO, (queue, 0), Time::MAX, rate)).count();
        dropped as f64 / 20_000.0
    }

    #[test]
    fn no_packet_is_dropped_below_min_and_every_packet_from_max() {
        assert_eq!(share(RedSpec::default(), 4), 0.0);
        assert_eq!(share(RedSpec::default(), 15), 1.0);
    }

    #[test]
    fn gaps_between_drops_are_uniform_so_the_share_is_two_p_over_one_plus_p() {
        // Section 7: gaps are uniform on 1 … 1/p, on average (1/p + 1)/2.
        let p = 0.1 * (10.0 - 5.0) / 10.0;
        assert!((share(RedSpec::default(), 10) - 2.0 * p / (1.0 + p)).abs() < 0.002);
    }

    #[test]
    fn gentle_probability_grows_up_to_twice_max() {
        let gentle = RedSpec { gentle: true, ..RedSpec::default() };
        assert!(share(gentle, 16) < 0.5);
        assert_eq!(share(gentle, 30), 1.0);
    }

    #[test]
    fn average_follows_the_queue_slowly_and_decays_while_idle() {
        let mut red = red(RedSpec::default());
        let rate: BitRate = "400kbit".parse().unwrap();
        for _ in 0..500 {
            red.drops_or_marks(Time::ZERO, (20, 0), Time::MAX, rate);
        }
        assert!((red.average - 20.0 * (1.0 - 0.998_f64.powi(500))).abs() < 1e-9);
        // 500 octets are 10 ms, so 10 s are 1000 steps.
        let before = red.average;
        red.drops_or_marks(Time::from_millis(11_000), (0, 0), Time::from_millis(1000), rate);
        assert!((red.average - before * 0.998_f64.powi(1000)).abs() < 1e-9);
    }

    /// The model counted an idle period again with each packet that it dropped, so that the average fell
    /// within a few packets; Linux drops every packet for as long as one period takes.
    #[test]
    fn an_idle_period_counts_once_however_many_packets_arrive_in_it() {
        let rate: BitRate = "400kbit".parse().unwrap();
        let average_after = |arrivals: u64| {
            let mut red = red(RedSpec::default());
            red.average = 100.0;
            for number in 1..=arrivals {
                let now = Time::from_millis(1000 * number / arrivals);
                assert!(red.drops_or_marks(now, (0, 0), Time::ZERO, rate), "the average is far above `max`");
            }
            red.average
        };
        assert!((average_after(1) - 100.0 * 0.998_f64.powi(100)).abs() < 1e-9);
        assert!((average_after(500) - average_after(1)).abs() < 1e-9);
    }

    #[test]
    fn the_first_packet_above_min_is_never_dropped() {
        let rate: BitRate = "1Mbit".parse().unwrap();
        let spec = RedSpec { weight: 1.0, drop: Ratio::new(1.0).unwrap(), ..RedSpec::default() };
        let mut red = red(spec);
        let mut strikes = |queue| red.drops_or_marks(Time::ZERO, (queue, 0), Time::MAX, rate);
        assert!(!strikes(14));
        assert!((0..50).any(|_| strikes(14)), "nine in ten of the others are");
        assert!(!strikes(4) && !strikes(14));
        assert!(strikes(15) && !strikes(14), "and after those above `max` it is the first again");
    }

    #[test]
    fn rfc3168_7_ecn_capable_packets_are_marked_and_others_dropped() {
        let plain = crate::transit::tests::transit(1000, Ecn::NotCapable).packet;
        let capable = || Packet { ecn: Ecn::Capable, ..plain.clone() };
        let mut with = red(RedSpec { ecn: true, ..RedSpec::default() });
        assert!(with.mark_if_allowed(&mut capable()) && !with.mark_if_allowed(&mut plain.clone()));
        assert_eq!(with.marked_packets(), 1);
        assert!(!red(RedSpec::default()).mark_if_allowed(&mut capable()), "only if it is configured to");
    }

    #[test]
    fn invalid_parameters_are_described() {
        let wrong = [
            RedSpec { max: QueueLimit::Bytes(9000), ..RedSpec::default() },
            RedSpec { max: QueueLimit::Packets(5), ..RedSpec::default() },
            RedSpec { weight: 0.0, ..RedSpec::default() },
            RedSpec { drop: Ratio::ZERO, ..RedSpec::default() },
        ];
        assert!(wrong.iter().all(|spec| spec.problem().is_some()));
        assert_eq!(RedSpec::default().problem(), None);
    }
}
