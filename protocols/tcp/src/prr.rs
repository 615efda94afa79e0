//! Proportional rate reduction: cwnd follows the delivered data down to ssthresh. RFC 9937 (RFC 6937).

use crate::loss_recovery::LossRecovery;
use crate::recovery_phase::Phase;
use crate::{Endpoint, RateHalving};

/// The state of one window reduction by PRR, in units of the congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Prr {
    /// The congestion window at the start of the reduction: RecoverFS.
    prior_window: u32,
    /// Units delivered since the start of the reduction: prr_delivered.
    delivered: u32,
    /// Units sent since the start of the reduction: prr_out.
    out: u32,
}

impl Prr {
    /// Starts a reduction of the congestion window `window`.
    pub(crate) fn begin(window: u32) -> Self {
        Self { prior_window: window, ..Self::default() }
    }

    /// Returns SndCnt, the number of units that may be sent on this acknowledgment. RFC 9937 section 6.
    fn send_count(&mut self, delivered: u32, in_flight: u32, ssthresh: u32, safe: bool, quantum: u32) -> u32 {
        self.delivered += delivered;
        let mut count = if in_flight > ssthresh {
            let share = u64::from(self.delivered) * u64::from(ssthresh);
            let proportional = share.div_ceil(u64::from(self.prior_window.max(1))) as u32;
            proportional.saturating_sub(self.out)
        } else {
            let mut catch_up = self.delivered.saturating_sub(self.out).max(delivered);
            if safe {
                catch_up += quantum;
            }
            catch_up.min(ssthresh - in_flight)
        };
        if self.out == 0 {
            // The fast retransmit is always sent.
            count = count.max(quantum);
        }
        count
    }
}

impl LossRecovery {
    /// Counts the units sent during the reduction.
    pub(crate) fn count_reduction_sent(&mut self, sent: u32) {
        if self.phase().is_reducing() {
            self.prr.out += sent;
        }
    }
}

impl Endpoint {
    /// Sets cwnd after an acknowledgment during the reduction.
    pub(crate) fn reduce_window(&mut self, delivered: u32, newly_lost: u32, advanced: bool) {
        if self.config.rate_halving != RateHalving::Off {
            return self.halve_rate();
        }
        let (in_flight, ssthresh, quantum) = (self.in_flight(), self.cwnd.ssthresh(), self.cwnd.quantum());
        if !self.config.prr {
            // RFC 5681 section 3.2 and RFC 6675 section 5: the window is reduced at once, but the first retransmission
            // is always sent, and so is the one after a partial acknowledgment (RFC 6582 section 3.2, step 3).
            let partial = advanced && !self.negotiated.uses_sack();
            let resends = self.episode.phase() == Phase::Recovery;
            let first =
                if resends && (self.episode.prr.out == 0 || partial) { in_flight + quantum } else { 0 };
            self.cwnd.set_cwnd(ssthresh.max(first));
            return;
        }
        if delivered == 0 {
            return;
        }
        let safe = advanced && newly_lost == 0;
        let count = self.episode.prr.send_count(delivered, in_flight, ssthresh, safe, quantum);
        self.cwnd.set_cwnd(in_flight + count);
    }

    /// Ends the reduction: cwnd becomes ssthresh, unless the reduction was undone. RFC 9937 section 6.
    pub(crate) fn finish_reduction(&mut self) {
        if self.config.rate_halving != RateHalving::Off {
            return self.finish_halving();
        }
        let due = self.episode.phase() == Phase::Reduced || self.is_reduction_in_effect();
        if due
            && !self.cwnd.is_rate_based()
            && self.cwnd.ssthresh() < hol_congestion::CongestionWindow::INFINITE
        {
            self.cwnd.set_cwnd(self.cwnd.ssthresh());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9937_example_sends_the_listed_segments() {
        // cwnd = inflight = 20 segments, the first one lost, ssthresh 10; one new segment is sent on each of
        // the first two duplicate ACKs (limited transmit), then recovery begins with the third: of 22
        // segments sent 3 are reported and 1 is lost. ACKs 3 to 18; then the data in flight do not exceed
        // ssthresh (RFC 6937, figure).
        let mut prr = Prr { prior_window: 20, ..Prr::default() };
        let mut windows = Vec::new();
        let mut in_flight = 18;
        for _ in 3..=18 {
            let count = prr.send_count(1, in_flight, 10, false, 1);
            windows.push(in_flight + count);
            prr.out += count;
            in_flight = in_flight + count - 1;
        }
        assert_eq!(windows, [19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11]);
    }

    #[test]
    fn prr_below_ssthresh_sends_the_delivered_and_one_more_if_safe() {
        // RFC 9937 section 6: SafeACK.
        let mut prr = Prr { prior_window: 20, delivered: 10, out: 10 };
        assert_eq!(prr.send_count(1, 4, 10, false, 1), 1);
        prr.out += 1;
        assert_eq!(prr.send_count(1, 4, 10, true, 1), 2);
        prr.out += 2;
        assert_eq!(prr.send_count(9, 9, 10, true, 1), 1, "never beyond ssthresh");
    }

    #[test]
    fn the_first_retransmission_always_leaves() {
        let mut prr = Prr { prior_window: 20, ..Prr::default() };
        assert_eq!(prr.send_count(1, 30, 1, false, 1), 1);
    }
}
