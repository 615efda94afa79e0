//! Retransmissions triggered by acknowledgments. RFC 6675 section 5.

use hol_base::Time;

use crate::Endpoint;
use crate::recovery_phase::Phase;
use crate::send::Push;
use crate::timers::TimerPurpose;

/// What the sender transmits in recovery after an acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecoveryTransmission {
    Nothing,
    /// Retransmissions of lost segments.
    Lost,
    /// New data, which show whether a timeout was spurious. RFC 5682 section 3.1, step 2b.
    New,
}

impl Endpoint {
    /// Sends the data that an acknowledgment in recovery allows.
    pub(crate) fn transmit_in_recovery(&mut self, now: Time, resend: RecoveryTransmission) {
        match resend {
            RecoveryTransmission::Nothing => {}
            RecoveryTransmission::Lost => self.retransmit_lost(now),
            RecoveryTransmission::New => {
                self.send_new(now, Push::FRto);
                if self.snd.nxt().at_or_before(self.episode.recover()) {
                    self.episode.timeouts.end_frto();
                    self.retransmit_lost(now);
                }
            }
        }
    }

    /// Retransmits lost segments, the oldest first, until the congestion window is full. RFC 6675 section 5.
    pub(crate) fn retransmit_lost(&mut self, now: Time) {
        let mut restart = false;
        let mut index = 0;
        while index < self.board.len() && self.board.retrans_out().segments < self.board.lost().segments {
            let segment = self.board.get(index);
            if segment.lost && !segment.resent {
                if self.in_flight() >= self.cwnd.cwnd() {
                    break;
                }
                self.begin_block(now, index);
                if self.sendable_segments(now, Push::Normal) == 0 || !self.retransmit(now, index) {
                    break;
                }
                restart |= index == 0 && !self.timers.is_armed_for(TimerPurpose::Reordering);
            }
            index += 1;
        }
        if restart {
            self.timers.arm(now, TimerPurpose::Retransmission, self.rtt.rto());
        }
    }

    /// Makes the segments that are sent together, starting at `index`, a block: as many as the congestion window
    /// and the rate allow. Linux: tcp_xmit_retransmit_queue.
    fn begin_block(&mut self, now: Time, index: usize) {
        if self.uses_segmentation_offload() && !self.board.is_in_block_of_previous(index, now) {
            let room = self.cwnd.cwnd() - self.in_flight();
            let segments = room.min(self.max_segments(self.payload_limit())) as usize;
            self.board.end_block(index, segments, self.memory.without_data());
        }
    }

    /// Retransmits one segment and counts it; returns false if the segment is beyond the peer's window.
    pub(crate) fn retransmit(&mut self, now: Time, index: usize) -> bool {
        let unit = self.config.congestion_unit;
        if !self.resend(now, index, false) {
            return false;
        }
        self.episode.undo.on_retransmission(now);
        self.episode.count_reduction_sent(self.board.get(index).size_in(unit));
        match self.episode.phase() {
            Phase::Loss => self.statistics.timeout_retransmissions += 1,
            _ => self.statistics.fast_retransmissions += 1,
        }
        true
    }
}
