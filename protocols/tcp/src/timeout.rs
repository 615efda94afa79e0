//! The retransmission timeout (RFC 6298): which segments it considers lost, and how later acknowledgments
//! show whether they were. F-RTO is RFC 5682.

use hol_base::{Duration, Time};
use hol_transport::{Event, Failure};

use crate::ack_info::AckInfo;
use crate::recovery_phase::Phase;
use crate::resend::RecoveryTransmission;
use crate::timers::TimerPurpose;
use crate::{Config, Endpoint, LossDetection, State};

/// The number of retransmission timeouts since SND.UNA last advanced.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeouts {
    consecutive: u32,
    /// Number of timeouts of the SYN.
    syn_timeouts: u32,
    /// Whether F-RTO is in progress, because the last timeout may have been spurious. RFC 5682.
    frto: bool,
}

impl Timeouts {
    /// Resets the number of timeouts, because SND.UNA has advanced or the timeout was spurious.
    pub(crate) fn reset(&mut self) {
        self.consecutive = 0;
    }

    /// Returns the number of timeouts of the SYN.
    pub(crate) fn syn_timeouts(&self) -> u32 {
        self.syn_timeouts
    }

    /// Ends F-RTO, because data that would show a spurious timeout cannot be sent, or because the timeout was
    /// shown to be genuine.
    pub(crate) fn end_frto(&mut self) {
        self.frto = false;
    }
}

/// Returns the sum of `timeouts` + 1 timeouts. The first is `first`, and each further one is twice as long as the
/// one before, up to `max`. Linux: tcp_model_timeout.
fn doubled(first: Duration, timeouts: u32, max: Duration) -> Duration {
    let linear_after = (max.as_nanos() / first.as_nanos().max(1)).checked_ilog2().unwrap_or(0);
    let doublings = timeouts.min(linear_after);
    let grown = first * ((2u64 << doublings.min(62)) - 1);
    grown + max * u64::from(timeouts - doublings)
}

impl Endpoint {
    /// Handles the expiry of the retransmission timer. RFC 6298 sections 5.4 to 5.6.
    pub(crate) fn on_retransmission_timeout(&mut self, now: Time) {
        if self.board.len() == 0 {
            return;
        }
        let opening = matches!(self.machine.state(), State::SynSent | State::SynReceived);
        let linear = if self.machine.state() == State::SynSent { self.config.syn_linear_timeouts } else { 0 };
        if self.has_timed_out(now, opening, linear) {
            return self.end(Event::Failed { reason: Failure::TimedOut });
        }
        self.statistics.timeouts += 1;
        self.statistics.backoffs += u64::from(self.episode.timeouts.consecutive > 0);
        self.enter_loss(now);
        self.episode.timeouts.consecutive += 1;
        self.episode.timeouts.syn_timeouts += u32::from(opening);
        self.retransmit(now, 0);
        if self.episode.timeouts.consecutive > linear {
            self.rtt.back_off();
        }
        let wait = self.until_user_timeout(now).map_or(self.rtt.rto(), |left| left.min(self.rtt.rto()));
        self.timers.arm(now, TimerPurpose::Retransmission, wait);
    }

    /// Returns whether the connection fails, because too many retransmissions were unanswered, or were unanswered
    /// for too long. RFC 9293 section 3.8.3. Linux: tcp_write_timeout, retransmits_timed_out.
    fn has_timed_out(&self, now: Time, opening: bool, linear: u32) -> bool {
        let Config { syn_retries, max_retries, rto_initial, user_timeout, max_retries_base, .. } =
            *self.config;
        let (retries, base) =
            if opening { (syn_retries, rto_initial) } else { (max_retries, max_retries_base) };
        let is_counted = opening || max_retries_base.is_zero();
        if is_counted && self.episode.timeouts.consecutive >= retries + linear {
            return true;
        }
        let limit = match (user_timeout.is_zero(), max_retries_base.is_zero()) {
            (false, _) => user_timeout,
            (true, false) => doubled(base, retries, self.config.rto_max),
            (true, true) => return false,
        };
        self.episode.timeouts.consecutive > 0 && self.unanswered_for(now).is_some_and(|time| time >= limit)
    }

    /// Returns for how long retransmissions have been unanswered, as the timestamp clock counts it: since the
    /// first retransmission, or since the SYN. Linux: retrans_stamp.
    fn unanswered_for(&self, now: Time) -> Option<Duration> {
        let since = match self.machine.state() {
            State::SynSent => Some(self.negotiated.first_syn()),
            _ => self.episode.undo.first_resent(),
        }?;
        let tick = self.config.timestamp_clock.as_nanos();
        let read = |at: Time| at.as_nanos() / tick;
        Some(Duration::from_nanos((read(now) - read(since)) * tick))
    }

    /// Returns the remaining user timeout, at least one tick; `None` if no user timeout is set. Linux:
    /// tcp_clamp_rto_to_user_timeout.
    fn until_user_timeout(&self, now: Time) -> Option<Duration> {
        let limit = Some(self.config.user_timeout).filter(|limit| !limit.is_zero())?;
        Some(self.timers.round_up_to_ticks(limit.saturating_sub(self.unanswered_for(now)?)))
    }

    /// Starts recovery from a timeout: marks all segments that may be lost, and reduces cwnd to the loss window.
    /// RFC 5681 section 3.1.
    fn enter_loss(&mut self, now: Time) {
        let prior = self.episode.phase();
        self.mark_all_lost(now);
        let again = prior == Phase::Loss && self.episode.timeouts.consecutive > 0;
        let within = prior >= Phase::Reduced && self.episode.recover().after(self.snd.una());
        if prior <= Phase::Disorder || !within || (prior == Phase::Loss && !again) {
            self.save_ssthresh();
            self.episode.undo.save_cwnd(self.cwnd.cwnd());
            self.cwnd.on_congestion(self.board.packets_out().count(self.config.congestion_unit));
            self.cwnd.on_loss();
            self.statistics.congestion_events += 1;
            self.begin_undo();
        }
        self.episode.begin(Phase::Loss, self.snd.nxt());
        self.cwnd.on_timeout(self.in_flight() + self.cwnd.quantum(), self.board.losses());
        self.usage.on_window_changed(now);
        if prior <= Phase::Disorder && self.board.sacked().segments >= self.config.dupthresh {
            self.episode.reordering.reset(self.config.dupthresh);
        }
        self.episode.probe.forget();
        self.marks.on_reduction();
        // RFC 5682 section 3.1, step 1: not during another recovery.
        self.episode.timeouts.frto =
            self.config.frto && (prior < Phase::Recovery || self.episode.timeouts.consecutive > 0);
    }

    /// Marks all segments as lost, except those sent less than a round trip ago (RFC 8985 section 6.3).
    fn mark_all_lost(&mut self, now: Time) {
        let reneged = self.negotiated.uses_sack() && self.board.front().is_some_and(|first| first.sacked);
        if reneged || !self.negotiated.uses_sack() {
            self.board.clear_sacked();
        }
        for index in 0..self.board.len() {
            let recent = !reneged
                && index > 0
                && self.config.recovery == LossDetection::Rack
                && now.saturating_since(self.board.get(index).sent) < self.episode.rack.rtt();
            if !recent {
                self.board.mark_lost(index);
            }
        }
    }

    /// Handles an acknowledgment in the recovery from a timeout.
    pub(crate) fn continue_loss(&mut self, info: &mut AckInfo) -> RecoveryTransmission {
        let recovered = self.snd.una().at_or_after(self.episode.recover());
        if info.advanced && self.undo_loss(false) {
            return RecoveryTransmission::Nothing;
        }
        if self.episode.timeouts.frto {
            // RFC 5682 section 3.1: never-retransmitted data arrived, so not all was lost.
            if info.original_arrived && self.undo_loss(true) {
                return RecoveryTransmission::Nothing;
            }
            if self.snd.nxt().after(self.episode.recover()) {
                if info.data_sacked || info.is_duplicate() {
                    self.episode.timeouts.end_frto();
                }
            } else if info.advanced && !recovered {
                self.episode.end_phase_at(self.snd.nxt());
                if self.queue.has_unsent() && self.snd.window_end().after(self.snd.nxt()) {
                    return RecoveryTransmission::New;
                }
                self.episode.timeouts.end_frto();
            }
        }
        if recovered {
            self.undo_after_recovery();
            if self.negotiated.uses_sack() || self.snd.una().after(self.episode.recover()) {
                self.episode.set_phase(Phase::Open);
            }
            return RecoveryTransmission::Nothing;
        }
        if !self.negotiated.uses_sack() {
            if self.snd.nxt().after(self.episode.recover()) && info.is_duplicate() {
                self.count_duplicate(info);
            } else if info.advanced {
                self.board.set_duplicates(0, self.negotiated.mss());
            }
        }
        self.moderate_window();
        RecoveryTransmission::Lost
    }

    /// Restarts the retransmission timer, or stops it when no data are outstanding. RFC 6298 section 5.2, 5.3.
    pub(crate) fn rearm_retransmission(&mut self, now: Time) {
        let Some(oldest) = self.board.front() else {
            self.timers.disarm();
            return;
        };
        let mut rto = self.rtt.rto();
        if self.timers.is_armed_for(TimerPurpose::Reordering)
            || self.timers.is_armed_for(TimerPurpose::LossProbe)
        {
            // The time since the transmission of the oldest segment counts.
            let waited = now.saturating_since(oldest.sent);
            rto = rto.saturating_sub(waited).max(Duration::from_micros(1));
        }
        self.timers.arm(now, TimerPurpose::Retransmission, rto);
    }
}
