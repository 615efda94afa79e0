//! Loss recovery: how acknowledgments are processed in each phase. RFC 5681, RFC 6582, RFC 6675, RFC 8985.

use hol_base::{Duration, Time};

use crate::ack_info::AckInfo;
use crate::prr::Prr;
use crate::rate_halving::RateReduction;
use crate::recovery_phase::Phase;
use crate::resend::RecoveryTransmission;
use crate::timers::TimerPurpose;
use crate::{Endpoint, LossDetection};

impl Endpoint {
    /// Processes an acknowledgment that indicates a loss, or arrives during recovery. Linux: tcp_fastretrans_alert.
    pub(crate) fn process_dubious_ack(&mut self, now: Time, info: &mut AckInfo) -> RecoveryTransmission {
        if info.reneged && info.advanced {
            return self.wait_for_reneging(now, info);
        }
        if info.echoes {
            self.episode.undo.forget_window();
        }
        if self.leave_if_complete() {
            return RecoveryTransmission::Nothing;
        }
        match self.episode.phase() {
            Phase::Recovery => {
                if !self.continue_recovery(now, info) {
                    return RecoveryTransmission::Nothing;
                }
            }
            Phase::Loss => {
                let resend = self.continue_loss(info);
                self.find_losses(now, info);
                let changed = self.episode.is_open() || info.lost_retransmission;
                if !changed || !self.enter_recovery_if_due(info.echoes) {
                    return resend;
                }
            }
            Phase::Open | Phase::Disorder | Phase::Reduced => {
                self.count_duplicate(info);
                if self.episode.phase() <= Phase::Disorder {
                    self.undo_by_dsack();
                }
                self.find_losses(now, info);
                if !self.enter_recovery_if_due(info.echoes) {
                    return RecoveryTransmission::Nothing;
                }
            }
        }
        RecoveryTransmission::Lost
    }

    /// Processes a partial or duplicate acknowledgment in fast recovery; returns false if no retransmission
    /// follows.
    fn continue_recovery(&mut self, now: Time, info: &mut AckInfo) -> bool {
        if !info.advanced {
            self.count_duplicate(info);
        } else if self.undo_by_delayed_original() {
            return false;
        }
        if self.undo_by_dsack() {
            self.set_mildest_phase(info.echoes);
        }
        self.find_losses(now, info);
        self.episode.phase() == Phase::Recovery || self.enter_recovery_if_due(info.echoes)
    }

    /// Ends the phase of recovery if all data sent before it began are acknowledged. Returns true if recovery must
    /// wait for further acknowledgments.
    fn leave_if_complete(&mut self) -> bool {
        if self.snd.una().before(self.episode.recover()) {
            return false;
        }
        match self.episode.phase() {
            Phase::Reduced if self.snd.una() != self.episode.recover() => {
                self.finish_reduction();
                self.episode.set_phase(Phase::Open);
            }
            Phase::Recovery => {
                if !self.negotiated.uses_sack() {
                    self.board.set_duplicates(0, self.negotiated.mss());
                }
                self.undo_after_recovery();
                // Without SACK a duplicate of the last ACK must not start another recovery. RFC 6582 section
                // 4; Linux: tcp_is_non_sack_preventing_reopen.
                if !self.negotiated.uses_sack() && self.snd.una() == self.episode.recover() {
                    return true;
                }
                self.finish_reduction();
                self.episode.set_phase(Phase::Open);
            }
            _ => {}
        }
        false
    }

    /// Sets the phase to Disorder if segments are SACKed or were retransmitted; otherwise to Open.
    pub(crate) fn try_keep_open(&mut self) {
        if self.episode.phase() == Phase::Reduced {
            return;
        }
        let out_of_order = self.board.sacked().segments + self.board.lost().segments > 0;
        let resent = self.board.front().is_some_and(|first| first.ever_resent);
        let phase = if out_of_order || resent { Phase::Disorder } else { Phase::Open };
        if !resent {
            self.episode.undo.forget_first_resent();
        }
        if self.episode.phase() != phase {
            self.episode.begin(phase, self.snd.nxt());
        }
        self.moderate_window();
    }

    /// Marks segments as lost by the configured method of loss detection.
    fn find_losses(&mut self, now: Time, info: &mut AckInfo) {
        if self.board.len() == 0 {
            return;
        }
        let resent = self.board.retrans_out().segments;
        match self.config.recovery {
            _ if !self.negotiated.uses_sack() => self.find_losses_by_duplicates(info.advanced),
            LossDetection::Rack => {
                if self.find_losses_by_time(now) {
                    info.restarts_timer = false;
                }
            }
            LossDetection::Fack if !self.episode.reordering.has_reordered() => self.find_losses_by_distance(),
            LossDetection::Fack | LossDetection::Sack | LossDetection::NewReno => self.find_losses_by_count(),
        }
        info.lost_retransmission |= resent > self.board.retrans_out().segments;
    }

    /// Starts fast recovery if a segment is lost; otherwise sets the least severe phase that applies.
    fn enter_recovery_if_due(&mut self, echoes: bool) -> bool {
        if self.board.lost().segments == 0 {
            self.set_mildest_phase(echoes);
            return false;
        }
        self.enter_recovery();
        if echoes {
            self.episode.undo.forget_window();
        }
        true
    }

    /// Sets the least severe phase that applies when no segment is lost. An ECN echo still reduces the window.
    fn set_mildest_phase(&mut self, echoes: bool) {
        if echoes {
            self.reduce_by_echo();
        }
        self.try_keep_open();
    }

    /// Starts fast recovery. RFC 5681 section 3.2, RFC 6675 section 5, step 4.
    pub(crate) fn enter_recovery(&mut self) {
        self.begin_undo();
        if !self.episode.phase().is_reducing() {
            self.save_ssthresh();
            self.begin_reduction();
        } else {
            self.episode.undo.forget_window();
        }
        self.cwnd.on_loss();
        self.episode.set_phase(Phase::Recovery);
    }

    /// Reduces ssthresh. cwnd is reduced with the following acknowledgments.
    pub(crate) fn begin_reduction(&mut self) {
        let flight = self.board.packets_out().count(self.config.congestion_unit);
        self.episode.end_phase_at(self.snd.nxt());
        self.episode.probe.forget();
        self.episode.undo.save_cwnd(self.cwnd.cwnd());
        self.episode.prr = Prr::begin(self.cwnd.cwnd());
        self.episode.halving = RateReduction::default();
        self.cwnd.on_congestion(flight);
        self.marks.on_reduction();
        self.statistics.congestion_events += 1;
    }

    /// Handles reneging: waits half a round trip for the peer to acknowledge the SACKed data. After that time, the
    /// retransmission timeout discards the SACKs. RFC 2018 section 8.
    fn wait_for_reneging(&mut self, now: Time, info: &mut AckInfo) -> RecoveryTransmission {
        let half = self.rtt.srtt().unwrap_or_default() / 2;
        let patience = half.max(Duration::from_millis(10));
        self.timers.arm(now, TimerPurpose::Retransmission, patience);
        info.restarts_timer = false;
        RecoveryTransmission::Nothing
    }
}
