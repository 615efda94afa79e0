//! Processes SACK blocks. RFC 2018 section 5, RFC 2883, RFC 6675 section 4.

use hol_base::Time;
use hol_wire::tcp::{SackBlock, Segment, SeqNum};
use smallvec::SmallVec;

use crate::Endpoint;
use crate::ack_info::AckInfo;

/// The number of segments that the peer has reported as duplicates by D-SACK.
#[derive(Debug, Clone, Default)]
pub(crate) struct DuplicateReports {
    segments: u64,
}

impl DuplicateReports {
    /// Adds `segments`. Returns false if the total exceeds `resent`, the number of segments ever retransmitted:
    /// the network then duplicates packets.
    fn count(&mut self, segments: u32, resent: u64) -> bool {
        self.segments += u64::from(segments);
        self.segments <= resent
    }
}

impl Endpoint {
    /// Marks our segments that the SACK blocks in the peer's `segment` report.
    pub(crate) fn mark_sacked_segments(&mut self, now: Time, segment: &Segment, info: &mut AckInfo) {
        let blocks = &segment.options.sack;
        let duplicate =
            is_duplicate_report(blocks, segment.ack) && self.take_duplicate_report(blocks[0], info);
        let oldest = self.snd.una() - self.snd.max_window();
        let sane = |block: &SackBlock| {
            block.left.before(block.right)
                && block.right.at_or_before(self.snd.nxt())
                && block.left.after(oldest)
        };
        let mut reported: SmallVec<[(SackBlock, bool); 4]> = blocks
            .iter()
            .enumerate()
            .map(|(index, block)| (*block, duplicate && index == 0))
            .filter(|(block, _)| sane(block))
            .collect();
        reported.sort_unstable_by_key(|(block, _)| block.left.distance_from(oldest));
        let mut reordered = self.snd.nxt();
        for (block, duplicate) in reported {
            for index in self.board.segments_within(block.left, block.right) {
                self.tag_segment(now, index, duplicate, &mut reordered, info);
            }
        }
        let highest = self.board.highest_sacked(self.snd.una());
        if reordered.before(highest) {
            self.note_reordering(reordered, highest);
        }
    }

    fn tag_segment(
        &mut self,
        now: Time,
        index: usize,
        duplicate: bool,
        reordered: &mut SeqNum,
        info: &mut AckInfo,
    ) {
        let segment = self.board.get(index).clone();
        if duplicate && segment.ever_resent {
            self.episode.undo.on_duplicate(segment.end());
        }
        if segment.end().at_or_before(self.snd.una()) {
            return;
        }
        if !segment.sacked {
            self.advance_rack(now, &segment);
            self.cwnd.on_segment_delivered(segment.departure.as_deref(), segment.sent);
            if !segment.ever_resent {
                let highest = self.board.highest_sacked(self.snd.una());
                if segment.seq.before(highest) && segment.seq.before(*reordered) {
                    *reordered = segment.seq;
                }
                info.original_arrived |= segment.end().at_or_before(self.episode.recover());
                info.first_sacked.get_or_insert(segment.sent);
                info.last_sacked = Some(segment.sent);
            }
            self.board.sack(index);
            info.data_sacked = true;
            info.delivered += segment.size_in(self.config.congestion_unit);
            info.delivered_octets += segment.payload.len() as u32;
        }
        if duplicate {
            self.board.on_retransmission_arrived(index);
        }
    }

    /// Processes a D-SACK; returns false if no retransmission can have caused it.
    fn take_duplicate_report(&mut self, block: SackBlock, info: &mut AckInfo) -> bool {
        let length = block.right.distance_from(block.left);
        if !block.left.before(block.right) || length > self.snd.max_window() {
            return false;
        }
        let segments = length.div_ceil(self.negotiated.mss());
        if segments == 1 && self.episode.probe.ends_at(block.right) {
            info.dsack_of_probe = true;
        }
        let resent = self.statistics.fast_retransmissions + self.statistics.timeout_retransmissions;
        if !self.episode.duplicates.count(segments, resent) {
            return false;
        }
        if self.episode.reordering.has_reordered() && !info.dsack_of_probe {
            self.episode.rack.on_dsack();
        }
        info.dsack = true;
        info.delivered += segments * self.cwnd.quantum();
        if block.right.at_or_before(info.prior_una) {
            for _ in 0..segments {
                self.episode.undo.on_duplicate(block.right);
            }
        }
        true
    }

    /// Records reordering: a segment that was never retransmitted was delivered after a segment that was sent
    /// later.
    pub(crate) fn note_reordering(&mut self, low: SeqNum, high: SeqNum) {
        let distance = high.distance_from(low).div_ceil(self.negotiated.mss());
        self.episode.reordering.note_distance(distance);
    }
}

/// Returns whether the first block is a D-SACK: it is below the ACK or inside the second block. RFC 2883 section 5.
fn is_duplicate_report(blocks: &[SackBlock], ack: SeqNum) -> bool {
    let Some(first) = blocks.first() else { return false };
    let inside =
        |outer: &SackBlock| first.right.at_or_before(outer.right) && first.left.at_or_after(outer.left);
    first.left.before(ack) || blocks.get(1).is_some_and(inside)
}
