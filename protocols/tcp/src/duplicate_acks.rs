//! Loss detection by duplicate acknowledgments (RFC 5681, RFC 6582) or by the number of segments SACKed above (RFC 6675).

use crate::Endpoint;
use crate::ack_info::AckInfo;
use crate::recovery_phase::Phase;

impl Endpoint {
    /// Counts a duplicate acknowledgment. Without SACK it shows that a segment has arrived, but not which one.
    pub(crate) fn count_duplicate(&mut self, info: &mut AckInfo) {
        if self.negotiated.uses_sack() {
            return;
        }
        if info.advanced && self.episode.phase() < Phase::Recovery {
            self.board.set_duplicates(0, self.negotiated.mss());
        }
        if info.is_duplicate() {
            let before = self.board.sacked().segments;
            self.board.set_duplicates(before + 1, self.negotiated.mss());
            let arrived = self.board.sacked().segments.saturating_sub(before);
            info.delivered += arrived * self.cwnd.quantum();
        }
    }

    /// Without SACK, subtracts the segments that a cumulative acknowledgment covers from the number of duplicate
    /// acknowledgments.
    pub(crate) fn deduct_covered_duplicates(&mut self, prior: u32, info: &mut AckInfo) {
        let left = prior.saturating_sub(info.acked_segments.saturating_sub(1));
        info.delivered += info.acked_segments.saturating_sub(prior).max(1) * self.cwnd.quantum();
        self.board.set_duplicates(left, self.negotiated.mss());
    }

    /// Marks the oldest segment as lost after the third duplicate acknowledgment, or after a partial
    /// acknowledgment. RFC 6582 section 3.2.
    pub(crate) fn find_losses_by_duplicates(&mut self, advanced: bool) {
        let enough = self.board.sacked().segments >= self.episode.reordering.dupthresh();
        let partial = self.episode.phase() == Phase::Recovery && advanced;
        if (self.episode.phase() < Phase::Recovery && enough) || partial {
            self.board.mark_lost(0);
        }
    }

    /// Marks segments as lost that lie at least DupThresh segments below the highest SACKed one. During recovery,
    /// marks only segments that were sent before the recovery began. In fast recovery, also marks each
    /// retransmission that was sent before the highest SACKed segment was first sent. Linux 2.6.16:
    /// net/ipv4/tcp_input.c tcp_update_scoreboard, tcp_mark_head_lost, tcp_sacktag_write_queue (event C).
    pub(crate) fn find_losses_by_distance(&mut self) {
        let Some(highest) = (0..self.board.len()).rev().find(|index| self.board.get(*index).sacked) else {
            return;
        };
        let phase = self.episode.phase();
        if phase == Phase::Recovery {
            let latest = self.board.get(highest).first_sent;
            for index in 0..highest {
                let segment = self.board.get(index);
                if segment.resent && !segment.sacked && segment.sent < latest {
                    self.board.mark_lost(index);
                }
            }
        }
        let lost = (highest + 1).saturating_sub(self.episode.reordering.dupthresh() as usize);
        for index in 0..lost {
            let segment = self.board.get(index);
            if phase >= Phase::Recovery && segment.end().after(self.episode.recover()) {
                break;
            }
            if !segment.sacked && !segment.lost {
                self.board.mark_lost(index);
            }
        }
    }

    /// Marks segments as lost if DupThresh segments above them have arrived: IsLost() of RFC 6675 section 4.
    pub(crate) fn find_losses_by_count(&mut self) {
        if self.board.sacked().segments < self.episode.reordering.dupthresh() {
            return;
        }
        let mut above = 0;
        for index in (0..self.board.len()).rev() {
            let segment = self.board.get(index);
            if segment.sacked {
                above += 1;
            } else if above >= self.episode.reordering.dupthresh() && !segment.lost {
                self.board.mark_lost(index);
            }
        }
    }
}
