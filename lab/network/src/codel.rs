//! CoDel: drops or marks by the queueing delay instead of the queue length. RFC 8289.

use std::collections::VecDeque;

use hol_base::{Duration, Time};
use hol_wire::Ecn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::transit::PacketInTransit;

/// CoDel; defaults of RFC 8289 sections 4.2 and 4.3 and of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CodelSpec {
    /// Acceptable queueing delay. Default 5 ms.
    pub target: Duration,
    /// Time for which the queueing delay must exceed the target before a drop: about the longest usual RTT. Default
    /// 100 ms.
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping. Default no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ecn: bool,
    /// Mark ECN-capable packets queued longer than this, for DCTCP. Default off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Duration>,
}

impl Default for CodelSpec {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
            ce_threshold: None,
        }
    }
}

impl CodelSpec {
    /// Returns a description of invalid parameters, with a remedy; `None` if they are valid.
    pub(crate) fn problem(self) -> Option<&'static str> {
        if self.target == Duration::ZERO {
            return Some("`target` is 0, so every packet exceeds it; raise it");
        }
        (self.interval <= self.target).then_some("`interval` is not above `target`; raise it")
    }
}

/// A packet in the queue, with the time at which it was queued.
#[derive(Debug)]
pub(crate) struct QueuedPacket {
    /// When the packet was queued.
    pub(crate) queued_at: Time,
    pub(crate) transit: PacketInTransit,
}

impl QueuedPacket {
    /// Returns for how long the packet has been queued.
    fn sojourn(&self, now: Ticks) -> Ticks {
        Ticks(now.0.saturating_sub(Ticks::from_nanos(self.queued_at.as_nanos()).0))
    }

    fn mark(&mut self) -> bool {
        self.transit.packet.ecn.mark()
    }
}

/// The packet at the head of a queue, and the octets that remain in the queue without it; `None` if the queue is
/// empty.
pub(crate) type DequeuedPacket = Option<(QueuedPacket, u64)>;

/// A time or a duration in the unit of Linux's CoDel, 1024 ns (`codel_get_time`). Because of the rounding, CoDel may
/// drop the next packet instead of the one that it would drop with exact times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Ticks(u64);

impl Ticks {
    fn from_nanos(nanos: u64) -> Self {
        Self(nanos >> 10)
    }

    fn after(self, duration: Self) -> Self {
        Self(self.0 + duration.0)
    }
}

/// The control state of CoDel (RFC 8289 section 5.2: `count`, `lastcount`, `first_above_time`, `drop_next`,
/// `dropping`), with the arithmetic of Linux (`include/net/codel_impl.h`).
#[derive(Debug)]
pub(crate) struct Codel {
    spec: CodelSpec,
    /// Length of the longest packet in octets. CoDel does not drop a packet if at most this number of octets remains
    /// in the queue without it.
    longest_packet: u64,
    /// The time at which the delay will have exceeded the target for an interval; `None` while the delay is below
    /// the target.
    first_above_time: Option<Ticks>,
    dropping: bool,
    drop_next: Ticks,
    count: u32,
    last_count: u32,
    inverse_root: InverseRoot,
    marked: u64,
}

/// An approximation of the inverse square root of a count, in units of 2⁻¹⁶. Linux makes one Newton step whenever the
/// count changes. The value is thus inaccurate at first, but close from the fifth step on.
#[derive(Debug, Clone, Copy)]
struct InverseRoot(u16);

impl InverseRoot {
    /// The inverse square root of 1.
    const ONE: Self = Self(u16::MAX);

    /// Performs one Newton step towards the inverse square root of `count`. Linux: `codel_Newton_step`.
    fn step_to(self, count: u32) -> Self {
        let root = u64::from(self.0) << 16;
        let square = (root * root) >> 32;
        let left = (3u64 << 32).wrapping_sub(u64::from(count) * square) >> 2;
        Self((left.wrapping_mul(root) >> (32 - 2 + 1) >> 16) as u16)
    }

    /// Multiplies an interval by the inverse square root.
    fn scale(self, interval: Ticks) -> Ticks {
        Ticks((interval.0 * u64::from(self.0)) >> 16)
    }
}

impl Codel {
    /// Creates the control state for an empty queue.
    pub(crate) fn new(spec: CodelSpec, longest_packet: u64) -> Self {
        Self {
            spec,
            longest_packet,
            first_above_time: None,
            dropping: false,
            drop_next: Ticks::default(),
            count: 0,
            last_count: 0,
            inverse_root: InverseRoot::ONE,
            marked: 0,
        }
    }

    /// Counts packets that were dropped because the queue was full, as if CoDel had dropped them.
    pub(crate) fn count_dropped(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Returns the number of packets that were marked, either instead of being dropped, or because they were
    /// queued for longer than `ce_threshold`.
    pub(crate) fn marked_packets(&self) -> u64 {
        self.marked
    }

    /// Returns the packet to transmit now, after dropping packets in front of it (RFC 8289 section 5.5). A packet
    /// that is marked instead of dropped is transmitted. A call thus marks at most one packet, as in Linux.
    pub(crate) fn next(
        &mut self,
        now: Time,
        mut take: impl FnMut() -> DequeuedPacket,
        mut lose: impl FnMut(PacketInTransit),
    ) -> Option<PacketInTransit> {
        let now = Ticks::from_nanos(now.as_nanos());
        let mut first = take();
        let is_late = self.is_late(now, &first);
        let mut replace = |first: &mut DequeuedPacket| {
            let dropped = std::mem::replace(first, take());
            dropped.into_iter().for_each(|(waiting, _)| lose(waiting.transit));
        };
        if self.dropping {
            self.dropping = is_late;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.inverse_root = self.inverse_root.step_to(self.count);
                if self.mark_if_allowed(&mut first) {
                    self.drop_next = self.next_drop_after(self.drop_next);
                    break;
                }
                replace(&mut first);
                self.dropping = self.is_late(now, &first);
                if self.dropping {
                    self.drop_next = self.next_drop_after(self.drop_next);
                }
            }
        } else if is_late {
            if !self.mark_if_allowed(&mut first) {
                replace(&mut first);
                // Updates the state with the delay of the next packet, which is not dropped now even if it is late.
                self.is_late(now, &first);
            }
            self.start_dropping(now);
        }
        self.mark_above_threshold(now, &mut first);
        first.map(|(waiting, _)| waiting.transit)
    }

    /// Marks the packet instead of dropping it, if its sender supports ECN and marking is enabled. Returns whether
    /// it was marked.
    fn mark_if_allowed(&mut self, first: &mut DequeuedPacket) -> bool {
        let marked = self.spec.ecn && first.as_mut().is_some_and(|(waiting, _)| waiting.mark());
        self.marked += u64::from(marked);
        marked
    }

    /// Marks the packet if it was queued for longer than `ce_threshold`. Linux: `ce_threshold`.
    fn mark_above_threshold(&mut self, now: Ticks, first: &mut DequeuedPacket) {
        let (Some(threshold), Some((waiting, _))) = (self.spec.ce_threshold, first) else { return };
        let is_marked = waiting.transit.packet.ecn == Ecn::Congested;
        if waiting.sojourn(now) > Ticks::from_nanos(threshold.as_nanos()) && waiting.mark() {
            self.marked += u64::from(!is_marked);
        }
    }

    /// Starts to drop packets. If the previous period of drops ended recently, continues at its rate.
    fn start_dropping(&mut self, now: Ticks) {
        let since = self.count.saturating_sub(self.last_count);
        // Before the first period of drops, packets dropped for lack of room do not count as recent drops: in Linux
        // `drop_next` is then the time of the boot.
        let recent = self.last_count > 0 && now < self.drop_next.after(Ticks(16 * self.interval().0));
        (self.count, self.inverse_root) = if since > 1 && recent {
            (since, self.inverse_root.step_to(since))
        } else {
            (1, InverseRoot::ONE)
        };
        self.last_count = self.count;
        self.dropping = true;
        self.drop_next = self.next_drop_after(now);
    }

    /// Returns whether delays have exceeded the target for longer than an interval (Linux: `codel_should_drop`). In
    /// RFC 8289 section 5.6 exactly an interval suffices, too.
    fn is_late(&mut self, now: Ticks, first: &DequeuedPacket) -> bool {
        let target = Ticks::from_nanos(self.spec.target.as_nanos());
        let waits_long = |(waiting, behind): &(QueuedPacket, u64)| {
            waiting.sojourn(now) >= target && *behind > self.longest_packet
        };
        if !first.as_ref().is_some_and(waits_long) {
            self.first_above_time = None;
            return false;
        }
        let interval = self.interval();
        now > *self.first_above_time.get_or_insert(now.after(interval))
    }

    fn interval(&self) -> Ticks {
        Ticks::from_nanos(self.spec.interval.as_nanos())
    }

    /// Returns when to drop the next packet. The interval between drops is inversely proportional to the square
    /// root of the number of drops (RFC 8289 section 4.1).
    fn next_drop_after(&self, time: Ticks) -> Ticks {
        time.after(self.inverse_root.scale(self.interval()))
    }
}

/// A queue whose packets CoDel drops or marks.
#[derive(Debug)]
pub(crate) struct CodelQueue {
    codel: Codel,
    packets: VecDeque<QueuedPacket>,
    /// Number of queued octets, including link-layer headers.
    octets: u64,
    overhead: u64,
}

impl CodelQueue {
    /// Creates a queue. A link-layer header has `overhead` octets, and the longest packet has
    /// `longest_packet` octets.
    pub(crate) fn new(spec: CodelSpec, overhead: u64, longest_packet: u64) -> Self {
        Self { codel: Codel::new(spec, longest_packet), packets: VecDeque::new(), octets: 0, overhead }
    }

    /// Returns the number of packets marked so far.
    pub(crate) fn marked_packets(&self) -> u64 {
        self.codel.marked
    }

    /// Returns the number of queued packets, and the number of their octets without link-layer headers.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        (self.packets.len() as u64, self.octets - self.packets.len() as u64 * self.overhead)
    }

    /// Queues a packet. The caller must have checked that there is room.
    pub(crate) fn push(&mut self, now: Time, transit: PacketInTransit) {
        self.octets += transit.length() + self.overhead;
        self.packets.push_back(QueuedPacket { queued_at: now, transit });
    }

    /// Returns the packet to transmit now; passes packets that are dropped before it to `lose`.
    pub(crate) fn pop(&mut self, now: Time, lose: impl FnMut(PacketInTransit)) -> Option<PacketInTransit> {
        let Self { codel, packets: waiting, octets, overhead } = self;
        codel.next(now, || pop_front(waiting, octets, *overhead), lose)
    }

    /// Removes and returns all queued packets.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = PacketInTransit> {
        self.octets = 0;
        std::mem::take(&mut self.packets).into_iter().map(|waiting| waiting.transit)
    }
}

/// Removes the packet at the head of `queue`, and subtracts its size from `octets`.
pub(crate) fn pop_front(
    queue: &mut VecDeque<QueuedPacket>,
    octets: &mut u64,
    overhead: u64,
) -> DequeuedPacket {
    let first = queue.pop_front()?;
    *octets -= first.transit.length() + overhead;
    Some((first, *octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn transit() -> PacketInTransit {
        crate::transit::tests::transit(1000, Ecn::default())
    }

    /// Dequeues one packet per ms, each after a wait of `wait` ms and with `behind` octets queued behind it;
    /// returns the times in ms of the drops.
    fn drops(codel: &mut Codel, times: std::ops::Range<u64>, wait: u64, behind: u64) -> Vec<u64> {
        let mut dropped = Vec::new();
        for at in times {
            let queued_at = Time::from_nanos(at.saturating_sub(wait) * MS);
            let take = || Some((QueuedPacket { queued_at, transit: transit() }, behind));
            codel.next(Time::from_nanos(at * MS), take, |_| dropped.push(at)).expect("a packet");
        }
        dropped
    }

    fn codel() -> Codel {
        Codel::new(CodelSpec::default(), 1514)
    }

    #[test]
    fn rfc8289_4_4_packet_that_waits_less_than_the_target_is_not_dropped() {
        assert!(drops(&mut codel(), 10..5000, 4, 100_000).is_empty());
    }

    #[test]
    fn rfc8289_4_4_nothing_is_dropped_at_a_backlog_of_one_longest_packet() {
        assert!(drops(&mut codel(), 10..5000, 300, 1514).is_empty());
    }

    #[test]
    fn rfc8289_5_5_first_drop_comes_after_an_interval_and_later_gaps_shrink() {
        // The first packet is dropped when more than 100 ms have passed. The following intervals are 100 ms
        // divided by about the root of 1, 2, 3 …, in whole ticks, and each ends with a packet. Linux makes
        // one step of Newton's method each time, so 1, 1/2, 9/16 …
        let ticks = |ms: u64| (ms * MS) >> 10;
        let law = (1..).scan((ticks(1101), 1.0), |(due, root), n| {
            *root *= (3.0 - f64::from(n) * *root * *root) / 2.0;
            assert!(n < 8 || (*root * f64::from(n).sqrt() - 1.0).abs() < 0.01, "{n}");
            *due += (ticks(100) as f64 * *root) as u64;
            Some(*due)
        });
        let found = |due: u64| (1101..).find(|at| ticks(*at) >= due).expect("a packet each ms");
        let expected: Vec<u64> = [1101].into_iter().chain(law.map(found)).take(20).collect();
        assert_eq!(drops(&mut codel(), 1000..3000, 20, 100_000)[..20], expected);
    }

    #[test]
    fn rfc8289_5_5_one_short_wait_ends_dropping() {
        let mut codel = codel();
        assert!(!drops(&mut codel, 1000..1500, 20, 100_000).is_empty());
        assert!(drops(&mut codel, 1500..1501, 4, 100_000).is_empty());
        assert!(drops(&mut codel, 1501..1601, 20, 100_000).is_empty());
    }

    #[test]
    fn rfc8289_5_5_dropping_that_resumes_soon_keeps_its_previous_rate() {
        let mut codel = codel();
        let first = drops(&mut codel, 1000..2000, 20, 100_000).len();
        drops(&mut codel, 2000..2001, 4, 100_000);
        let again = drops(&mut codel, 2001..2301, 20, 100_000);
        let gap = again[1] - again[0];
        assert!(
            (gap as f64 - 100.0 / (first as f64 - 1.0).sqrt()).abs() <= 2.0,
            "{gap} ms after {first} drops"
        );
        let mut rested = super::tests::codel();
        drops(&mut rested, 1000..2000, 20, 100_000);
        drops(&mut rested, 2000..4000, 4, 100_000);
        let again = drops(&mut rested, 4000..4300, 20, 100_000);
        assert_eq!(again[1] - again[0], 100);
    }

    #[test]
    fn overflow_before_the_first_codel_drop_does_not_set_the_drop_rate() {
        let mut codel = codel();
        codel.count_dropped(64);
        let dropped = drops(&mut codel, 1000..1300, 20, 100_000);
        assert_eq!(dropped[..2], [1101, 1201]);
        codel.count_dropped(64);
        drops(&mut codel, 1300..1301, 4, 100_000);
        let again = drops(&mut codel, 1301..1600, 20, 100_000);
        assert_eq!(
            again[1] - again[0],
            98,
            "later ones do: Newton's step from 1/√3 to 1/√66 overshoots, as in Linux"
        );
    }

    #[test]
    fn rfc8289_5_6_ecn_capable_packets_are_marked_instead_of_dropped() {
        let spec = CodelSpec { ecn: true, ..CodelSpec::default() };
        let outcome = |ecn: Ecn| {
            let mut codel = Codel::new(spec, 1514);
            let (mut marked, mut dropped) = (Vec::new(), Vec::new());
            for at in 1000..3000 {
                let queued_at = Time::from_nanos((at - 20) * MS);
                let take = || {
                    let mut transit = transit();
                    transit.packet.ecn = ecn;
                    Some((QueuedPacket { queued_at, transit }, 100_000))
                };
                let leaves = codel.next(Time::from_nanos(at * MS), take, |_| dropped.push(at));
                if leaves.is_some_and(|transit| transit.packet.ecn == Ecn::Congested) {
                    marked.push(at);
                }
            }
            assert_eq!(codel.marked_packets(), marked.len() as u64);
            (marked, dropped)
        };
        let dropped = outcome(Ecn::NotCapable).1;
        assert_eq!(outcome(Ecn::Capable), (dropped.clone(), vec![]), "at the times of the drops");
        assert_eq!(dropped, drops(&mut codel(), 1000..3000, 20, 100_000));
    }

    #[test]
    fn ecn_capable_packets_above_the_ce_threshold_are_marked() {
        let ce_threshold = Some(Duration::from_millis(2));
        let mut codel = Codel::new(CodelSpec { ce_threshold, ..CodelSpec::default() }, 1514);
        let mut leaves = |wait: u64, ecn: Ecn| {
            let mut transit = transit();
            transit.packet.ecn = ecn;
            let waiting = QueuedPacket { queued_at: Time::from_nanos((10 - wait) * MS), transit };
            let mut waiting = Some((waiting, 100_000));
            let first = codel.next(
                Time::from_nanos(10 * MS),
                || waiting.take(),
                |_| panic!("no packet may be dropped"),
            );
            first.expect("a packet").packet.ecn
        };
        assert_eq!(leaves(2, Ecn::Capable), Ecn::Capable);
        assert_eq!(leaves(3, Ecn::Capable), Ecn::Congested);
        assert_eq!(leaves(3, Ecn::NotCapable), Ecn::NotCapable);
        assert_eq!(codel.marked_packets(), 1);
    }

    #[test]
    fn invalid_parameters_are_described() {
        let millis = Duration::from_millis;
        assert!(CodelSpec { target: Duration::ZERO, ..CodelSpec::default() }.problem().is_some());
        assert!(CodelSpec { target: millis(100), ..CodelSpec::default() }.problem().is_some());
        assert_eq!(CodelSpec::default().problem(), None);
    }
}
