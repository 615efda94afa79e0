//! Tail loss probes. RFC 8985 section 7.

use hol_base::{Duration, Time};
use hol_wire::tcp::SeqNum;

use crate::Endpoint;
use crate::ack_info::AckInfo;
use crate::recovery_phase::Phase;
use crate::send::Push;
use crate::timers::TimerPurpose;

/// The last tail loss probe; `None` if it has been accounted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LossProbe(Option<Probe>);

/// The last tail loss probe. RFC 8985 section 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Probe {
    /// SND.NXT when the probe was sent: TLP.end_seq.
    end_seq: SeqNum,
    /// Whether the probe was a retransmission: TLP.is_retrans.
    resent: bool,
}

impl LossProbe {
    /// Returns whether the probe is outstanding and `end` acknowledges it.
    pub(crate) fn ends_at(&self, end: SeqNum) -> bool {
        self.0.is_some_and(|probe| probe.end_seq == end)
    }

    /// Returns whether the probe is outstanding and was a retransmission.
    pub(crate) fn is_resent(&self) -> bool {
        self.0.is_some_and(|probe| probe.resent)
    }

    /// Discards the state of the probe, because it was accounted for or recovery has begun.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

impl Endpoint {
    /// Starts the probe timer; returns false if no probe is needed. RFC 8985 section 7.2.
    ///
    /// With `restarted`, RTO counts from now; otherwise from the transmission of the oldest segment.
    pub(crate) fn schedule_loss_probe(&mut self, now: Time, restarted: bool) -> bool {
        let quiet = matches!(self.episode.phase(), Phase::Open | Phase::Reduced);
        let Some(oldest) = self.board.front() else { return false };
        if !self.config.tlp || !self.negotiated.uses_sack() || !quiet {
            return false;
        }
        let mut timeout = match self.rtt.srtt() {
            None => self.config.rto_initial,
            Some(srtt) if self.board.len() == 1 => srtt * 2 + self.config.tlp_ack_allowance,
            Some(srtt) => srtt * 2 + self.config.timer_slack,
        };
        let waited = if restarted { Duration::ZERO } else { now.saturating_since(oldest.sent) };
        let left = self.rtt.rto().saturating_sub(waited);
        if !left.is_zero() {
            timeout = timeout.min(left);
        }
        self.timers.arm(now, TimerPurpose::LossProbe, timeout);
        true
    }

    /// Sends a probe when its timer expires: new data if there are any, otherwise the last segment again. RFC 8985
    /// section 7.3.
    pub(crate) fn send_loss_probe(&mut self, now: Time) {
        if self.board.len() == 0 {
            return;
        }
        if self.episode.probe.0.is_none() && self.send_probe_segment(now) {
            self.statistics.tail_loss_probes += 1;
            self.timers.arm(now, TimerPurpose::Retransmission, self.rtt.rto());
            return;
        }
        let oldest = self.board.front().map_or(now, |first| first.sent);
        let left = self.rtt.rto().saturating_sub(now.saturating_since(oldest));
        self.timers.arm(now, TimerPurpose::Retransmission, left.max(Duration::from_micros(1)));
    }

    fn send_probe_segment(&mut self, now: Time) -> bool {
        let segments = self.board.len();
        self.send_new(now, Push::Probe);
        let resent = self.board.len() == segments;
        if resent {
            if !self.resend(now, segments - 1, true) {
                return false;
            }
            self.statistics.fast_retransmissions += 1;
        }
        self.episode.probe = LossProbe(Some(Probe { end_seq: self.snd.nxt(), resent }));
        true
    }

    /// Processes the acknowledgment of a probe. If the probe has repaired a loss, reduces the window. RFC 8985
    /// section 7.4.
    pub(crate) fn on_probe_acknowledged(&mut self, ack: SeqNum, info: &AckInfo) {
        let Some(probe) = self.episode.probe.0.filter(|probe| ack.at_or_after(probe.end_seq)) else { return };
        if !probe.resent || info.dsack_of_probe {
            self.episode.probe.forget();
        } else if ack.after(probe.end_seq) {
            // The peer reported no duplicate before it acknowledged newer data: the original was lost.
            self.begin_reduction();
            self.episode.set_phase(Phase::Reduced);
            self.finish_reduction();
            self.episode.set_phase(Phase::Disorder);
            self.try_keep_open();
        } else if !info.advanced && info.is_duplicate() && !info.data_sacked {
            self.episode.probe.forget();
        }
    }
}
