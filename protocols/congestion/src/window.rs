//! The congestion window of a TCP connection.

use hol_base::{Duration, Time};
use serde::Deserialize;

use crate::bbr::{AckSample, Bbr, ConnectionStart};
use crate::bbr3::{Bbr3, LostSegment};
use crate::cubic::Cubic;
use crate::dctcp::Dctcp;
use crate::delivery_rate::{DeliveryAtSend, DeliveryState};
use crate::hystart::{Hystart, RoundTripSample};
use crate::pacing::Pacing;
use crate::prague::Prague;
use crate::reno::{self, Credit};

/// The congestion control algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Reno, RFC 5681.
    Reno,
    /// CUBIC, RFC 9438.
    Cubic,
    /// BBR version 1, as in Linux: it estimates bandwidth and round-trip time, and paces packets.
    Bbr,
    /// BBR version 3, draft-ietf-ccwg-bbr-05. It does not react to ECN marks.
    Bbr3,
    /// DCTCP, RFC 8257, as in Linux: it reacts to the share of packets with ECN marks.
    Dctcp,
    /// TCP Prague, for L4S: draft-briscoe-iccrg-prague-congestion-control-04.
    Prague,
}

/// The state of a congestion control algorithm.
#[derive(Debug, Clone)]
enum Control {
    Reno,
    Cubic(Cubic),
    Bbr(Box<Bbr>),
    Bbr3(Box<Bbr3>),
    Dctcp(Dctcp),
    Prague(Box<Prague>),
}

/// cwnd and ssthresh. This crate counts all data in their unit: segments if the quantum is 1, octets if the
/// quantum is the SMSS.
#[derive(Debug, Clone)]
pub struct CongestionWindow {
    cwnd: u32,
    ssthresh: u32,
    quantum: u32,
    credit: Credit,
    /// Number of octets acknowledged since the window last grew, if the window grows by counted octets.
    counted: u32,
    control: Control,
    hystart: Option<Hystart>,
}

impl CongestionWindow {
    /// Value of ssthresh before the first loss.
    pub const INFINITE: u32 = i32::MAX as u32;

    /// Creates a window of `initial` units, in slow start.
    pub fn new(algorithm: Algorithm, quantum: u32, initial: u32, hystart: bool) -> Self {
        let control = match algorithm {
            Algorithm::Reno => Control::Reno,
            Algorithm::Cubic => Control::Cubic(Cubic::default()),
            Algorithm::Bbr => Control::Bbr(Box::new(Bbr::new(quantum))),
            Algorithm::Bbr3 => Control::Bbr3(Box::new(Bbr3::new(quantum))),
            Algorithm::Dctcp => Control::Dctcp(Dctcp::new()),
            Algorithm::Prague => Control::Prague(Box::new(Prague::new(quantum, initial))),
        };
        let hystart = (hystart && algorithm == Algorithm::Cubic).then(Hystart::default);
        Self {
            cwnd: initial,
            ssthresh: Self::INFINITE,
            quantum,
            credit: Credit::default(),
            counted: 0,
            control,
            hystart,
        }
    }

    /// Returns the window in units.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Returns the slow start threshold in units.
    pub fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Returns the size of a segment in units.
    pub fn quantum(&self) -> u32 {
        self.quantum
    }

    /// Returns whether the window is below ssthresh. RFC 5681 section 3.1.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows the window after `acked` units were acknowledged. The caller calls this only if the window was fully
    /// used. RFC 5681 section 3.1.
    pub fn on_ack(&mut self, now: Time, acked: u32) {
        let mut acked = acked;
        if self.in_slow_start() {
            let opened = acked.min(self.ssthresh - self.cwnd);
            self.cwnd += opened;
            acked -= opened;
            if acked == 0 {
                return;
            }
        }
        let price = match &mut self.control {
            Control::Reno | Control::Dctcp(_) => self.cwnd,
            Control::Bbr(_) | Control::Bbr3(_) | Control::Prague(_) => return,
            Control::Cubic(cubic) => {
                cubic.acked_per_segment(now, self.cwnd / self.quantum, acked / self.quantum) * self.quantum
            }
        };
        self.cwnd = self.cwnd.saturating_add(self.credit.count_acked(acked, price.max(1)) * self.quantum);
    }

    /// Counts acknowledged octets for [`Self::grow_by_octets`].
    pub fn count_octets(&mut self, acked: u32) {
        self.counted = self.counted.saturating_add(acked);
    }

    /// Grows the window by one segment once enough octets have been acknowledged: `segment` octets in slow start,
    /// a full window of such segments in congestion avoidance. RFC 3465 with L of one segment; Linux 2.6.16:
    /// net/ipv4/tcp_cong.c tcp_slow_start, tcp_reno_cong_avoid.
    pub fn grow_by_octets(&mut self, segment: u32) {
        let slow = self.cwnd <= self.ssthresh;
        let price = if slow { segment } else { (self.cwnd / self.quantum).saturating_mul(segment) };
        if self.counted >= price {
            self.counted = if slow { 0 } else { self.counted - price };
            self.cwnd = self.cwnd.saturating_add(self.quantum);
        }
    }

    /// Handles the round-trip sample of an acknowledgment.
    pub fn on_rtt(&mut self, round: RoundTripSample) {
        let Control::Cubic(cubic) = &mut self.control else { return };
        if !cubic.on_rtt(round.now, round.rtt) || self.cwnd >= self.ssthresh {
            return;
        }
        let rtt_min = cubic.rtt_min().unwrap_or(round.rtt);
        if let Some(hystart) = &mut self.hystart
            && hystart.should_exit(round, rtt_min, self.cwnd / self.quantum)
        {
            self.ssthresh = self.cwnd;
        }
    }

    /// Reduces ssthresh on congestion; the caller reduces cwnd.
    ///
    /// A threshold in octets is computed from `flight` (RFC 5681 section 3.1); a threshold in segments is computed
    /// from cwnd, as in Linux.
    pub fn on_congestion(&mut self, flight: u32) {
        let in_use = if self.quantum == 1 { self.cwnd } else { flight };
        self.ssthresh = match &mut self.control {
            Control::Reno => reno::ssthresh(in_use, self.quantum),
            Control::Cubic(cubic) => cubic.ssthresh(in_use / self.quantum) * self.quantum,
            Control::Bbr(bbr) => return bbr.on_congestion(self.cwnd),
            Control::Bbr3(bbr) => return bbr.on_congestion(self.cwnd),
            Control::Prague(_) => return,
            Control::Dctcp(dctcp) => dctcp.ssthresh(self.cwnd, self.quantum),
        };
        self.forget_acknowledged();
    }

    /// Discards the credit of earlier acknowledgments, so that it does not enlarge the window after a reduction.
    fn forget_acknowledged(&mut self) {
        self.credit.clear();
        self.counted = 0;
    }

    /// Tells the algorithm that the congestion event is a loss. DCTCP and Prague react differently to losses and
    /// to marks. RFC 8257 section 3.4.
    pub fn on_loss(&mut self) {
        match &mut self.control {
            Control::Dctcp(_) => self.ssthresh = reno::ssthresh(self.cwnd, self.quantum),
            Control::Prague(prague) => prague.on_loss(self.cwnd),
            Control::Reno | Control::Cubic(_) | Control::Bbr(_) | Control::Bbr3(_) => {}
        }
    }

    /// Tells the algorithm that the congestion event is an ECN mark; only Prague has a reaction of its own.
    pub fn on_mark(&mut self) {
        if let Control::Prague(prague) = &mut self.control {
            prague.on_mark();
        }
    }

    /// Handles the delivery of `units`, `marked` of which carried a CE mark. `progress` is SND.UNA and SND.NXT.
    #[inline]
    pub fn on_delivered(&mut self, units: u32, marked: u32, progress: (u32, u32)) {
        if let Control::Dctcp(dctcp) = &mut self.control {
            dctcp.on_delivered(units, marked, progress);
        }
    }

    /// Handles a retransmission timeout: sets cwnd to `loss_window` (RFC 5681 section 3.1). `losses` is the
    /// number of segments marked as lost so far.
    pub fn on_timeout(&mut self, loss_window: u32, losses: u32) {
        self.set_cwnd(loss_window);
        self.forget_acknowledged();
        match &mut self.control {
            Control::Reno | Control::Dctcp(_) | Control::Prague(_) => {}
            Control::Cubic(cubic) => cubic.on_timeout(),
            Control::Bbr(bbr) => bbr.on_timeout(losses.wrapping_mul(self.quantum)),
            Control::Bbr3(bbr) => bbr.on_timeout(),
        }
        if let Some(hystart) = &mut self.hystart {
            *hystart = Hystart::default();
        }
    }

    /// Handles the first transmission after nothing was in flight for the time `idle`.
    pub fn on_idle(&mut self, idle: Duration, now: Time) {
        match &mut self.control {
            Control::Reno | Control::Dctcp(_) | Control::Prague(_) => {}
            Control::Cubic(cubic) => cubic.on_idle(idle, now),
            Control::Bbr(bbr) => bbr.on_restart(now, &mut self.cwnd),
            Control::Bbr3(bbr) => bbr.on_restart(now, &mut self.cwnd),
        }
    }

    /// Restores cwnd and ssthresh after a spurious reduction. RFC 4015 section 3.2.
    pub fn restore(&mut self, cwnd: u32, ssthresh: u32, losses: u32) {
        self.ssthresh = self.ssthresh.max(ssthresh);
        match &mut self.control {
            Control::Bbr(bbr) => bbr.on_undo(losses.wrapping_mul(self.quantum)),
            Control::Bbr3(bbr) => bbr.on_undo(self.cwnd),
            Control::Prague(prague) => self.cwnd = prague.on_undo(self.cwnd),
            Control::Reno | Control::Cubic(_) | Control::Dctcp(_) => self.set_cwnd(self.cwnd.max(cwnd)),
        }
    }

    /// Sets the window to `cwnd`, or to one unit if `cwnd` is 0.
    pub fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    /// Sets the slow start threshold.
    pub fn set_ssthresh(&mut self, ssthresh: u32) {
        self.ssthresh = ssthresh;
    }

    /// Returns whether the controller (BBR, Prague) sets the window itself, even after losses and idle periods,
    /// and paces segments. The caller must report every transmission, delivery and acknowledgment to such a
    /// controller. Linux: `cong_control` of `tcp_congestion_ops`.
    #[inline]
    pub fn is_rate_based(&self) -> bool {
        matches!(self.control, Control::Bbr(_) | Control::Bbr3(_) | Control::Prague(_))
    }

    /// Returns the pacing rate and burst; `None` if the algorithm does not pace.
    #[inline]
    pub fn pacing(&self) -> Option<Pacing> {
        match &self.control {
            Control::Bbr(bbr) => Some(bbr.pacing()),
            Control::Bbr3(bbr) => Some(bbr.pacing()),
            Control::Prague(prague) => Some(prague.pacing()),
            Control::Reno | Control::Cubic(_) | Control::Dctcp(_) => None,
        }
    }

    /// Tells a rate-based controller that the connection is open.
    pub fn begin(&mut self, beginning: ConnectionStart) {
        match &mut self.control {
            Control::Bbr(bbr) => bbr.begin(beginning, self.cwnd),
            Control::Bbr3(bbr) => bbr.begin(beginning, self.cwnd),
            Control::Prague(prague) => prague.begin(beginning, self.cwnd),
            Control::Reno | Control::Cubic(_) | Control::Dctcp(_) => {}
        }
    }

    /// Handles the transmission of a segment; returns the state to store with the segment. `outstanding` says
    /// whether other segments are in flight, `in_flight` is the number of units in flight, and `lost` the number
    /// of units ever considered lost.
    #[inline]
    pub fn on_segment_sent(
        &mut self,
        now: Time,
        outstanding: bool,
        in_flight: u32,
        lost: u32,
    ) -> Option<Box<DeliveryAtSend>> {
        match &mut self.control {
            Control::Bbr(bbr) => Some(Box::new(bbr.deliveries.on_segment_sent(now, outstanding))),
            Control::Bbr3(bbr) => Some(Box::new(bbr.on_segment_sent(now, outstanding, in_flight, lost))),
            Control::Reno | Control::Cubic(_) | Control::Dctcp(_) | Control::Prague(_) => None,
        }
    }

    /// Returns the delivery state; `None` if the controller does not use one.
    #[inline]
    fn deliveries(&mut self) -> Option<&mut DeliveryState> {
        match &mut self.control {
            Control::Bbr(bbr) => Some(&mut bbr.deliveries),
            Control::Bbr3(bbr) => Some(&mut bbr.deliveries),
            Control::Reno | Control::Cubic(_) | Control::Dctcp(_) | Control::Prague(_) => None,
        }
    }

    /// Handles the delivery of a segment that was sent at `sent`.
    #[inline]
    pub fn on_segment_delivered(&mut self, departure: Option<&DeliveryAtSend>, sent: Time) {
        if let (Some(deliveries), Some(departure)) = (self.deliveries(), departure) {
            deliveries.on_segment_delivered(*departure, sent);
        }
    }

    /// Handles a segment that was detected as lost.
    pub fn on_lost(&mut self, now: Time, segment: &LostSegment) {
        if let Control::Bbr3(bbr) = &mut self.control {
            bbr.on_lost(now, segment, self.cwnd);
        }
    }

    /// Counts `units` as delivered by an acknowledgment that has no other information.
    pub fn count_delivered(&mut self, units: u32) {
        if let Some(deliveries) = self.deliveries() {
            deliveries.count_delivered(units);
        }
    }

    /// Tells the controller that the application has less than a full segment of data to send beyond the
    /// `in_flight` units.
    pub fn limit_by_application(&mut self, in_flight: u32) {
        if let Some(deliveries) = self.deliveries() {
            deliveries.limit_by_application(in_flight);
        }
    }

    /// Handles an acknowledgment for rate-based controllers, after all other information about it has been
    /// processed.
    pub fn on_acknowledged(&mut self, ack: &AckSample) {
        match &mut self.control {
            Control::Bbr(bbr) => bbr.on_acknowledged(ack, &mut self.cwnd, &mut self.ssthresh),
            Control::Bbr3(bbr) => bbr.on_acknowledged(ack, &mut self.cwnd),
            Control::Prague(prague) => prague.on_acknowledged(ack, &mut self.cwnd, &mut self.ssthresh),
            Control::Reno | Control::Cubic(_) | Control::Dctcp(_) => {}
        }
    }

    /// Returns the ssthresh to set when the window is not used: 3/4 of the window, or the current ssthresh if that
    /// is larger. RFC 2861 section 3.
    pub fn current_ssthresh(&self) -> u32 {
        self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_grows_by_the_acknowledged_units_until_ssthresh() {
        // RFC 5681 section 3.1.
        let mut window = CongestionWindow::new(Algorithm::Reno, 1, 10, false);
        window.on_ack(Time::ZERO, 4);
        assert_eq!(window.cwnd(), 14);
        window.set_ssthresh(16);
        window.on_ack(Time::ZERO, 18);
        assert_eq!(window.cwnd(), 17, "two to ssthresh, then one for a window of 16");
    }

    #[test]
    fn byte_counting_grows_the_window_by_full_segments() {
        // Linux 2.6.16: net/ipv4/tcp_cong.c tcp_slow_start, tcp_reno_cong_avoid.
        let mut window = CongestionWindow::new(Algorithm::Reno, 1, 3, false);
        let after = |window: &mut CongestionWindow, acknowledgments: u32| {
            (0..acknowledgments).for_each(|_| {
                window.count_octets(64);
                window.grow_by_octets(1448);
            });
            window.cwnd()
        };
        assert_eq!(after(&mut window, 22), 3);
        assert_eq!(after(&mut window, 1), 4, "23 messages of 64 octets are more than a segment");
        window.count_octets(10_000);
        window.grow_by_octets(1448);
        assert_eq!(window.cwnd(), 5, "the window grows by one segment at most");
        window.set_ssthresh(4);
        assert_eq!(after(&mut window, 113), 5);
        assert_eq!(after(&mut window, 1), 6, "7296 octets are more than five segments");
        window.count_octets(9000);
        window.on_timeout(1, 0);
        window.grow_by_octets(1448);
        assert_eq!(window.cwnd(), 1, "tcp_enter_loss forgets what was counted");
    }

    #[test]
    fn ssthresh_in_octets_is_half_of_the_flight() {
        // RFC 5681 equation 4 and the note below it: FlightSize, not cwnd.
        let mut window = CongestionWindow::new(Algorithm::Reno, 1000, 10_000, false);
        window.on_congestion(6000);
        assert_eq!(window.ssthresh(), 3000);
    }

    #[test]
    fn cubic_in_octets_counts_segments() {
        let mut window = CongestionWindow::new(Algorithm::Cubic, 1000, 100_000, false);
        window.on_congestion(100_000);
        assert_eq!(window.ssthresh(), 70_000);
        window.set_cwnd(70_000);
        for step in 1..=70 {
            window.on_ack(Time::from_millis(step), 1000);
        }
        assert!((70_000..=72_000).contains(&window.cwnd()), "{}", window.cwnd());
    }

    #[test]
    fn window_of_acknowledged_octets_grows_cwnd_by_one_segment() {
        // RFC 5681 section 3.1.
        let mut window = CongestionWindow::new(Algorithm::Reno, 1000, 10_000, false);
        window.set_ssthresh(10_000);
        assert_eq!((window.in_slow_start(), window.quantum()), (false, 1000));
        (0..10).for_each(|_| window.on_ack(Time::ZERO, 1000));
        assert_eq!(window.cwnd(), 11_000);
    }

    #[test]
    fn acknowledgments_used_in_slow_start_give_no_further_credit() {
        // RFC 5681 section 3.1.
        let mut window = CongestionWindow::new(Algorithm::Reno, 1, 14, false);
        window.set_ssthresh(16);
        window.on_ack(Time::ZERO, 18);
        window.on_ack(Time::ZERO, 16);
        assert_eq!(window.cwnd(), 17, "16 of 17");
        window.on_ack(Time::ZERO, 1);
        assert_eq!(window.cwnd(), 18);
    }

    /// Returns the window after each acknowledgment of 4000 segments, one of 50 marked and one of 400 lost,
    /// with sequence numbers from `first`.
    fn course(algorithm: Algorithm, first: u32) -> Vec<(u32, u32)> {
        const RTT: Duration = Duration::from_millis(40);
        let mut window = CongestionWindow::new(algorithm, 1, 10, true);
        let rtt = Some(RTT);
        let opened = Time::from_millis(1000);
        window.begin(ConnectionStart {
            now: opened,
            min_rtt: rtt,
            smoothed_rtt: rtt,
            segment: 1448,
            seed: hol_base::Seed(1),
        });
        let mut course = Vec::new();
        for acked in 1..=4000_u32 {
            let sent_at = opened + Duration::from_millis(1) * u64::from(acked);
            let now = sent_at + RTT;
            let una = first.wrapping_add(acked);
            let progress = (una, una.wrapping_add(window.cwnd()));
            let (is_marked, is_lost) = (acked.is_multiple_of(50), acked.is_multiple_of(400));
            let departure = window.on_segment_sent(sent_at, true, 0, 0);
            window.on_segment_delivered(departure.as_deref(), sent_at);
            if is_marked || is_lost {
                window.on_congestion(window.cwnd());
                if is_lost {
                    window.on_loss();
                } else {
                    window.on_mark();
                }
                if !window.is_rate_based() {
                    window.set_cwnd(window.ssthresh());
                }
            }
            window.on_delivered(1, u32::from(is_marked), progress);
            let acknowledged = u64::from(acked) * 1448;
            let sent = acknowledged + u64::from(window.cwnd()) * 1448;
            window.on_rtt(RoundTripSample { now, rtt: RTT, acknowledged, sent });
            window.on_ack(now, 1);
            window.on_acknowledged(&AckSample {
                progress,
                marked: u32::from(is_marked),
                ..AckSample::one_segment(now, RTT)
            });
            course.push((window.cwnd(), window.ssthresh()));
        }
        course
    }

    /// RFC 9293 section 3.4: sequence numbers wrap around, and the first is arbitrary.
    #[test]
    fn first_sequence_number_does_not_change_the_window() {
        use Algorithm::{Bbr, Bbr3, Cubic, Dctcp, Prague, Reno};
        for algorithm in [Reno, Cubic, Bbr, Bbr3, Dctcp, Prague] {
            let expected = course(algorithm, 0);
            for first in [1, i32::MAX as u32 - 2000, i32::MAX as u32 + 1, u32::MAX - 2000, u32::MAX] {
                assert_eq!(course(algorithm, first), expected, "{algorithm:?} from {first}");
            }
        }
    }

    #[test]
    fn cubic_is_the_same_in_octets_and_in_segments() {
        let [mut segments, mut octets] =
            [1, 1000].map(|quantum| CongestionWindow::new(Algorithm::Cubic, quantum, 10 * quantum, false));
        for step in 0..4000 {
            let now = Time::from_millis(step);
            for (window, quantum) in [(&mut segments, 1), (&mut octets, 1000)] {
                if step % 1500 == 100 {
                    window.on_congestion(window.cwnd());
                    window.set_cwnd(window.ssthresh());
                }
                window.on_ack(now, 2 * quantum);
            }
            assert_eq!(octets.cwnd(), 1000 * segments.cwnd(), "{now:?}");
        }
        assert!(segments.cwnd() > 40, "{}", segments.cwnd());
    }

    /// Runs HyStart with a round trip that grows by a quarter, in a window of `cwnd` octets and segments of 1000.
    fn grown_delay(cwnd: u32, ssthresh: u32) -> CongestionWindow {
        let mut window = CongestionWindow::new(Algorithm::Cubic, 1000, cwnd, true);
        window.set_ssthresh(ssthresh);
        for i in 0..12 {
            let rtt = Duration::from_millis(if i == 0 { 40 } else { 50 });
            let now = Time::from_millis(5000 + 5 * i);
            // The second sample starts another round.
            window.on_rtt(RoundTripSample {
                now,
                rtt,
                acknowledged: 1 + i,
                sent: if i == 0 { 1 } else { 100 },
            });
        }
        window
    }

    #[test]
    fn a_delay_that_grows_ends_the_first_slow_start() {
        // RFC 9438 section 4.10, as in Linux's HyStart: from a window of 16 segments on.
        assert_eq!(grown_delay(20_000, u32::MAX).ssthresh(), 20_000);
        assert_eq!(grown_delay(15_999, u32::MAX).ssthresh(), u32::MAX);
        assert_eq!(grown_delay(20_000, 18_000).ssthresh(), 18_000, "slow start is over already");
        assert_eq!(grown_delay(20_000, 20_000).ssthresh(), 20_000);
    }

    #[test]
    fn timeout_sets_the_loss_window_and_resets_hystart() {
        // RFC 5681 section 3.1: the loss window.
        let mut window = grown_delay(20_000, u32::MAX);
        let has_ended = |window: &CongestionWindow| window.hystart.as_ref().map(|hystart| hystart.has_ended);
        assert_eq!(has_ended(&window), Some(true));
        window.on_timeout(1000, 1);
        assert_eq!(window.cwnd(), 1000);
        assert_eq!(has_ended(&window), Some(false));
    }

    #[test]
    fn spurious_reduction_is_undone() {
        // RFC 4015 section 3.2; growth since the reduction stays.
        let mut window = CongestionWindow::new(Algorithm::Reno, 1, 20, false);
        window.on_congestion(20);
        window.set_cwnd(10);
        window.restore(20, 40, 0);
        assert_eq!((window.cwnd(), window.ssthresh()), (20, 40));
        window.restore(5, 5, 0);
        assert_eq!((window.cwnd(), window.ssthresh()), (20, 40));
    }

    #[test]
    fn marks_reduce_by_their_share_and_loss_by_half() {
        // RFC 8257 sections 3.3 and 3.4.
        let mut window = CongestionWindow::new(Algorithm::Dctcp, 1, 100, false);
        (1..=2000).for_each(|una| window.on_delivered(1, u32::from(una % 10 == 0), (una, una + 10)));
        window.on_congestion(100);
        assert!((93..=97).contains(&window.ssthresh()), "{}", window.ssthresh());
        window.on_loss();
        assert_eq!(window.ssthresh(), 50);
        let mut reno = CongestionWindow::new(Algorithm::Reno, 1, 100, false);
        reno.on_loss();
        assert_eq!(reno.ssthresh(), CongestionWindow::INFINITE, "on_congestion has done it");
    }

    #[test]
    fn remembered_ssthresh_is_at_least_three_quarters_of_cwnd() {
        // RFC 2861 section 3.
        let mut window = CongestionWindow::new(Algorithm::Reno, 1, 40, false);
        window.set_ssthresh(10);
        assert_eq!(window.current_ssthresh(), 30);
        window.set_ssthresh(35);
        assert_eq!(window.current_ssthresh(), 35);
    }

    #[test]
    fn cubic_excludes_idle_time() {
        // RFC 9438 section 4.2: of two equal connections, the one that was idle for 5 s does not jump.
        let after = |idle: u64| {
            let mut window = CongestionWindow::new(Algorithm::Cubic, 1, 100, false);
            window.on_congestion(100);
            window.set_cwnd(70);
            window.on_ack(Time::ZERO, 1);
            let now = Time::from_millis(9000);
            window.on_idle(Duration::from_millis(idle), now);
            (0..70).for_each(|_| window.on_ack(now, 1));
            window.cwnd()
        };
        assert!(after(0) > after(8900), "{} and {}", after(0), after(8900));
    }

    #[test]
    fn only_rate_based_controllers_pace_and_track_departures() {
        let beginning = ConnectionStart {
            now: Time::from_millis(1000),
            min_rtt: Some(Duration::from_millis(40)),
            smoothed_rtt: Some(Duration::from_millis(40)),
            segment: 1448,
            seed: hol_base::Seed(1),
        };
        for algorithm in [Algorithm::Reno, Algorithm::Cubic, Algorithm::Dctcp] {
            let mut window = CongestionWindow::new(algorithm, 1, 10, false);
            window.begin(beginning);
            assert!(!window.is_rate_based() && window.pacing().is_none());
            assert!(window.on_segment_sent(beginning.now, false, 0, 0).is_none());
        }
        let mut window = CongestionWindow::new(Algorithm::Bbr, 1, 10, false);
        window.begin(beginning);
        assert!(window.is_rate_based());
        // Draft, section 4.2.1: ten segments in 40 ms, times 2.89, minus a hundredth.
        let rate = window.pacing().unwrap().rate;
        assert!((rate as f64 / (10.0 * 1448.0 / 0.04 * 2.889 * 0.99) - 1.0).abs() < 0.01, "{rate}");
        let departure = window.on_segment_sent(beginning.now, false, 0, 0).unwrap();
        window.on_segment_delivered(Some(&departure), beginning.now);
        window.count_delivered(3);
        window.limit_by_application(7);
        let Control::Bbr(bbr) = &window.control else { unreachable!("it was asked for") };
        assert_eq!((bbr.deliveries.delivered(), bbr.deliveries.is_application_limited()), (4, true));
        let ack = AckSample {
            delivered: 100,
            ..AckSample::one_segment(Time::from_millis(1040), Duration::from_millis(40))
        };
        window.on_acknowledged(&ack);
        assert_eq!(window.cwnd(), 110, "the window grows by the delivered units");
        let faster = window.pacing().unwrap().rate as f64 / rate as f64;
        assert!(
            (10.0..10.5).contains(&faster),
            "103 segments are delivered in 40 ms instead of 10: {faster}"
        );
        let Control::Bbr(bbr) = &window.control else { unreachable!("it was asked for") };
        assert_eq!(bbr.deliveries.delivered_at(), ack.now);
    }
}
