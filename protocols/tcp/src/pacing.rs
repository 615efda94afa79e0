//! Pacing by the connection's own timer, if the congestion controller sets a rate, as Linux does without the `fq` queue
//! (tcp_internal_pacing).

use hol_base::{Duration, Time};
use hol_congestion::{AckSample, ConnectionStart, DeliveryAtSend, LostSegment, RecoveryKind};

use crate::Endpoint;
use crate::ack_info::AckInfo;
use crate::recovery_phase::Phase;
use crate::send::Push;

/// Number of segments at the start of a connection that are not paced. Linux: tcp_update_skb_after_send.
const UNPACED_SEGMENTS: u32 = 10;

/// The state of pacing: when the next segment may be sent.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    departure: Time,
    segments: u32,
}

impl Pacer {
    /// Updates the pacer after octets were sent at `rate` octets per second. If they were sent late, the next
    /// segment may be sent early by the same time, but at most by half of its own transmission time. Linux:
    /// tcp_update_skb_after_send, which does this per burst; this function does it per segment.
    fn on_sent(&mut self, now: Time, octets: usize, rate: u64) {
        let late = now.saturating_since(self.departure);
        self.departure = self.departure.max(now);
        self.segments = self.segments.saturating_add(1);
        if self.segments < UNPACED_SEGMENTS || rate == 0 {
            return;
        }
        let time = Duration::from_nanos(octets as u64 * 1_000_000_000 / rate);
        self.departure += time - late.min(time / 2);
    }
}

impl Endpoint {
    /// Returns how many segments pacing allows now. If none, starts a timer that expires when one is allowed.
    #[inline]
    pub(crate) fn sendable_segments(&mut self, now: Time, push: Push) -> u32 {
        match self.cwnd.pacing() {
            Some(pacing) if push != Push::Probe => self.sendable_when_paced(now, pacing.burst),
            _ => u32::MAX,
        }
    }

    fn sendable_when_paced(&mut self, now: Time, burst: u32) -> u32 {
        if self.pacer.departure > now {
            self.timers.pace(self.pacer.departure);
            return 0;
        }
        // At most half of the window is sent at once. Linux: tcp_cwnd_test.
        burst.min(self.cwnd.cwnd() / 2 / self.cwnd.quantum()).max(1)
    }

    /// Counts data that are sent now.
    #[inline]
    pub(crate) fn charge_pacing(&mut self, now: Time, octets: usize) {
        if let Some(pacing) = self.cwnd.pacing() {
            self.pacer.on_sent(now, octets, pacing.rate);
        }
    }

    /// Sends data when the pacing timer expires, or when the queue of the network layer has room again. Linux:
    /// tcp_tsq_write.
    pub(crate) fn on_departure_due(&mut self, now: Time) {
        if self.has_unsent_lost_data() {
            self.retransmit_lost(now);
        }
        self.push_pending(now);
    }

    /// Initialises pacing when the connection is established.
    pub(crate) fn init_pacing(&mut self, now: Time) {
        if self.cwnd.is_rate_based() {
            self.cwnd.begin(ConnectionStart {
                now,
                min_rtt: self.rtt.min(),
                smoothed_rtt: self.rtt.srtt(),
                segment: self.negotiated.mss(),
                seed: hol_base::Seed(self.rng.next_u64()),
            });
        }
    }

    /// Marks the connection as limited by the application. Called before a write if no other data wait.
    /// draft-cheng-iccrg-delivery-rate-estimation-00, section 3.4.
    pub(crate) fn check_application_limit(&mut self) {
        let in_flight = self.in_flight();
        if self.queue.length() < self.negotiated.mss() as usize
            && in_flight < self.cwnd.cwnd()
            && !self.has_unsent_lost_data()
        {
            self.cwnd.limit_by_application(in_flight);
        }
    }

    /// Returns the delivery state to store with a segment that is sent now; `None` unless the congestion
    /// controller is rate-based.
    #[inline]
    pub(crate) fn delivery_state_at_send(
        &mut self,
        now: Time,
        outstanding: bool,
    ) -> Option<Box<DeliveryAtSend>> {
        if !self.cwnd.is_rate_based() {
            return None;
        }
        let (in_flight, lost) = (self.in_flight(), self.board.losses().wrapping_mul(self.cwnd.quantum()));
        self.cwnd.on_segment_sent(now, outstanding, in_flight, lost)
    }

    /// Reports segments that were marked as lost to a rate-based congestion controller.
    fn report_losses(&mut self, now: Time) {
        let quantum = self.cwnd.quantum();
        for (departure, range, losses) in self.board.take_lost_segment_states() {
            let lost = losses.wrapping_mul(quantum);
            self.cwnd.on_lost(now, &LostSegment { departure, units: quantum, lost, range });
        }
    }

    /// Reports an acknowledgment to a rate-based congestion controller.
    pub(crate) fn report_delivery(&mut self, now: Time, info: &AckInfo) {
        self.report_losses(now);
        let quantum = self.cwnd.quantum();
        let recovery = match self.episode.phase() {
            Phase::Open | Phase::Disorder | Phase::Reduced => RecoveryKind::None,
            Phase::Recovery => RecoveryKind::Fast,
            Phase::Loss => RecoveryKind::Timeout,
        };
        self.cwnd.on_acknowledged(&AckSample {
            now,
            delivered: info.delivered,
            marked: info.marked * quantum,
            is_cwnd_limited: self.was_cwnd_limited(info.prior_in_flight),
            progress: (self.snd.una().0, self.snd.nxt().0),
            newly_lost: info.newly_lost * quantum,
            lost: self.board.losses().wrapping_mul(quantum),
            reneged: info.reneged,
            may_be_delayed: info.may_be_delayed(self.snd.una(), self.negotiated.mss()),
            rtt: info.rtt,
            min_rtt: self.rtt.min(),
            smoothed_rtt: self.rtt.srtt(),
            prior_in_flight: info.prior_in_flight,
            in_flight: self.in_flight(),
            recovery,
            departure: self.pacer.departure,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_paced_after_the_first_ten() {
        let mut pacer = Pacer::default();
        let now = Time::from_millis(100);
        for _ in 0..9 {
            pacer.on_sent(now, 1000, 1_000_000);
        }
        assert_eq!(pacer.departure, now);
        for sent in 1..=3 {
            pacer.on_sent(now, 1000, 1_000_000);
            assert_eq!(pacer.departure, now + Duration::from_millis(sent));
        }
    }

    #[test]
    fn late_departure_shortens_the_next_pacing_gap() {
        let mut pacer = Pacer { departure: Time::from_millis(10), segments: 20 };
        pacer.on_sent(Time::from_millis(10), 1000, 100_000);
        assert_eq!(pacer.departure, Time::from_millis(20));
        pacer.on_sent(Time::from_millis(23), 1000, 100_000);
        assert_eq!(pacer.departure, Time::from_millis(30));
    }
}
