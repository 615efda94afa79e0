//! Undoes an unnecessary reduction of the window. RFC 4015 (Eifel), RFC 3708 (D-SACK).

use hol_base::Time;
use hol_wire::tcp::SeqNum;

use crate::Endpoint;
use crate::recovery_phase::Phase;

/// The state needed to undo the last reduction of the congestion window.
#[derive(Debug, Clone, Default)]
pub(crate) struct Undo {
    /// SND.UNA when recovery began; `None` if there is nothing to undo.
    marker: Option<SeqNum>,
    /// Number of retransmissions that the peer has not reported as duplicates; `None` before the first
    /// retransmission.
    unreported: Option<u32>,
    /// cwnd before the reduction. It is restored only if ssthresh was saved, too.
    cwnd: u32,
    ssthresh: Option<u32>,
    /// The time of the first retransmission in this recovery.
    first_resent: Option<Time>,
}

impl Undo {
    /// Stores cwnd before the reduction that begins now.
    pub(crate) fn save_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd;
    }

    /// Discards the saved cwnd, because the window is already being reduced.
    pub(crate) fn forget_window(&mut self) {
        self.ssthresh = None;
    }

    /// Discards the saved state, because there is nothing to undo.
    pub(crate) fn forget(&mut self) {
        self.marker = None;
    }

    /// Records that no retransmission is outstanding.
    pub(crate) fn forget_first_resent(&mut self) {
        self.first_resent = None;
    }

    /// Returns when the first retransmission of this recovery was sent.
    pub(crate) fn first_resent(&self) -> Option<Time> {
        self.first_resent
    }

    /// Records that the peer has reported (by D-SACK) a retransmission that ends at `end` as a duplicate.
    pub(crate) fn on_duplicate(&mut self, end: SeqNum) {
        if self.marker.is_some_and(|marker| end.after(marker)) {
            self.unreported = self.unreported.map(|needed| needed.saturating_sub(1));
        }
    }

    /// Records that a segment was retransmitted.
    pub(crate) fn on_retransmission(&mut self, now: Time) {
        self.first_resent.get_or_insert(now);
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// Returns whether the peer has reported every retransmission as a duplicate.
    fn all_needless(&self) -> bool {
        self.marker.is_some() && self.unreported == Some(0)
    }
}

impl Endpoint {
    /// Starts a recovery. Retransmissions that are still outstanding may be reported as duplicates later.
    pub(crate) fn begin_undo(&mut self) {
        let probes = u32::from(self.episode.probe.is_resent());
        let out = self.board.retrans_out().segments + probes;
        self.episode.undo.marker = self.config.undo.then_some(self.snd.una());
        self.episode.undo.unreported = (out > 0).then_some(out);
        if !self.board.front().is_some_and(|first| first.ever_resent) {
            self.episode.undo.first_resent = None;
        }
    }

    /// Stores ssthresh before the reduction.
    pub(crate) fn save_ssthresh(&mut self) {
        let reducing = self.episode.phase().is_reducing();
        let ssthresh = if reducing { self.cwnd.ssthresh() } else { self.cwnd.current_ssthresh() };
        self.episode.undo.ssthresh = Some(ssthresh);
    }

    /// Returns whether the acknowledgment answers the original segment, which it shows by a timestamp from before
    /// the first retransmission. RFC 3522 section 3.2.
    fn original_was_delayed(&self) -> bool {
        match self.episode.undo.first_resent {
            Some(at) => self.timestamps.echoes_before(at),
            None => self.negotiated.uses_sack() || self.snd.una().before(self.episode.recover()),
        }
    }

    /// Returns whether the last reduction was not undone.
    pub(crate) fn is_reduction_in_effect(&self) -> bool {
        !self.config.undo || self.episode.undo.marker.is_some()
    }

    fn was_needless(&self) -> bool {
        let undo = &self.episode.undo;
        undo.marker.is_some() && (undo.all_needless() || self.original_was_delayed())
    }

    /// Restores cwnd and ssthresh. RFC 4015 section 3.2.
    fn restore_window(&mut self, forget_losses: bool) {
        if forget_losses {
            self.board.clear_lost();
        }
        if let Some(ssthresh) = self.episode.undo.ssthresh {
            if ssthresh > self.cwnd.ssthresh() {
                self.marks.forget_reduction();
            }
            self.cwnd.restore(self.episode.undo.cwnd, ssthresh, self.board.losses());
        }
        self.moderate_window();
        self.episode.undo.marker = None;
        self.episode.rack.search_again();
    }

    /// Undoes the reduction of the congestion window if recovery has ended and was unnecessary.
    pub(crate) fn undo_after_recovery(&mut self) {
        if self.was_needless() {
            self.restore_window(false);
        } else {
            self.episode.rack.on_recovered();
        }
    }

    /// Undoes the reduction of the congestion window if D-SACK has reported every retransmission as a duplicate.
    /// RFC 3708 section 3.
    pub(crate) fn undo_by_dsack(&mut self) -> bool {
        let needless = self.episode.undo.all_needless();
        if needless {
            self.episode.rack.on_undone();
            self.restore_window(false);
        }
        needless
    }

    /// In fast recovery, undoes the reduction of the congestion window if a partial acknowledgment shows that an
    /// original segment was only delayed. Returns whether recovery must wait for outstanding retransmissions.
    pub(crate) fn undo_by_delayed_original(&mut self) -> bool {
        if self.episode.undo.marker.is_none() || !self.original_was_delayed() {
            return false;
        }
        if self.negotiated.uses_sack() {
            self.episode.reordering.note_reordering();
        }
        if self.board.retrans_out().segments > 0 {
            return true;
        }
        self.restore_window(true);
        self.episode.set_phase(Phase::Disorder);
        self.try_keep_open();
        false
    }

    /// Undoes a spurious timeout that F-RTO (`proven`), timestamps or D-SACK have detected.
    pub(crate) fn undo_loss(&mut self, proven: bool) -> bool {
        let spurious = self.episode.undo.marker.is_some() && (proven || self.was_needless());
        if spurious {
            self.restore_window(true);
            self.episode.timeouts.reset();
            if proven || self.negotiated.uses_sack() {
                self.episode.set_phase(Phase::Open);
            }
        }
        spurious
    }
}
