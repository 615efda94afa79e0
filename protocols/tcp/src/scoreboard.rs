//! The scoreboard: the state of each segment that was sent and not acknowledged. RFC 6675 section 3.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use hol_base::Time;
use hol_congestion::DeliveryAtSend;
use hol_wire::tcp::{Flags, SeqNum};

use crate::CongestionUnit;

/// Upper bound of the number of segments in a block, which has 64 KiB in segments of 1448 octets.
const MAX_BLOCK_SEGMENTS: usize = 64;

/// A segment that was sent and that the cumulative acknowledgment does not cover.
#[derive(Debug, Clone)]
pub(crate) struct SentSegment {
    pub(crate) seq: SeqNum,
    pub(crate) flags: Flags,
    pub(crate) payload: Bytes,
    /// When the latest copy of the segment was sent.
    pub(crate) sent: Time,
    /// When the segment was sent first.
    pub(crate) first_sent: Time,
    /// Whether the peer has SACKed the segment (RFC 2018).
    pub(crate) sacked: bool,
    /// Whether the segment, or its latest copy, is considered lost.
    pub(crate) lost: bool,
    /// Whether a retransmission of the segment is in flight.
    pub(crate) resent: bool,
    /// Whether RACK has marked the latest copy as lost, so that RACK does not consider it again. Linux:
    /// tsorted_sent_queue.
    pub(crate) marked_by_rack: bool,
    /// Whether the latest copy was sent at the same time as new data, but after them.
    pub(crate) follows_new: bool,
    /// Whether the segment was ever retransmitted, so that it gives no round-trip sample (Karn).
    pub(crate) ever_resent: bool,
    /// The delivery state that a rate-based congestion controller has stored with the latest copy.
    pub(crate) departure: Option<Box<DeliveryAtSend>>,
    /// Memory in octets that the segment uses in the send buffer in addition to its own octets.
    pub(crate) overhead: u32,
}

/// A number of segments and octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SegmentTotals {
    pub(crate) segments: u32,
    pub(crate) octets: u32,
}

/// The delivery state stored with a lost segment, the segment's sequence numbers, and the number of losses up to
/// it.
pub(crate) type LostSegmentState = (DeliveryAtSend, (u32, u32), u32);

/// The retransmission queue with its counters. SYN and FIN are entries like data.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    /// Lost segments that have not been reported to the congestion controller, each with its delivery state.
    lost_departures: Vec<LostSegmentState>,
    segments: VecDeque<SentSegment>,
    /// Numbers of segments and octets of all entries.
    out: SegmentTotals,
    sacked: SegmentTotals,
    lost: SegmentTotals,
    resent: SegmentTotals,
    /// Memory in octets that all segments use in the send buffer in addition to their own octets.
    overhead: u32,
    /// The number of segments ever considered lost.
    losses: u32,
    /// Sequence number that follows the highest SACKed segment.
    highest_sacked: SeqNum,
}

impl SentSegment {
    /// Creates a segment that is sent for the first time.
    pub(crate) fn new(now: Time, seq: SeqNum, flags: Flags, payload: Bytes) -> Self {
        Self {
            seq,
            flags,
            payload,
            sent: now,
            first_sent: now,
            sacked: false,
            lost: false,
            resent: false,
            marked_by_rack: false,
            follows_new: false,
            ever_resent: false,
            departure: None,
            overhead: 0,
        }
    }

    /// Returns the number of sequence numbers in the segment.
    pub(crate) fn length(&self) -> u32 {
        let control = Flags::SYN.0 | Flags::FIN.0;
        self.payload.len() as u32 + (self.flags.0 & control).count_ones()
    }

    /// Returns the size of the segment in the unit of the congestion window.
    pub(crate) fn size_in(&self, unit: CongestionUnit) -> u32 {
        match unit {
            CongestionUnit::Packets => 1,
            CongestionUnit::Bytes => self.length(),
        }
    }

    /// Returns the sequence number that follows the segment.
    pub(crate) fn end(&self) -> SeqNum {
        self.seq + self.length()
    }

    /// Returns whether this segment was sent before another one, which was sent at `time` and ends at `end`.
    /// RFC 8985 section 5.2.
    pub(crate) fn sent_before(&self, time: Time, end: SeqNum) -> bool {
        time > self.sent || (time == self.sent && end.after(self.end()))
    }
}

impl SegmentTotals {
    fn add(&mut self, segment: &SentSegment) {
        self.segments += 1;
        self.octets += segment.length();
    }

    fn remove(&mut self, segment: &SentSegment) {
        self.segments -= 1;
        self.octets -= segment.length();
    }

    /// Returns the number of segments or octets, whichever is the unit of the congestion window.
    pub(crate) fn count(self, unit: CongestionUnit) -> u32 {
        match unit {
            CongestionUnit::Packets => self.segments,
            CongestionUnit::Bytes => self.octets,
        }
    }
}

impl Scoreboard {
    /// Returns the segments from the oldest to the newest.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &SentSegment> {
        self.segments.iter()
    }

    /// Returns the numbers of segments and octets of the whole queue.
    pub(crate) fn packets_out(&self) -> SegmentTotals {
        self.out
    }

    /// Returns the numbers of segments and octets that the peer has SACKed. Without SACK, each duplicate
    /// acknowledgment counts as one segment.
    pub(crate) fn sacked(&self) -> SegmentTotals {
        self.sacked
    }

    /// Returns the numbers of segments and octets that are considered lost.
    pub(crate) fn lost(&self) -> SegmentTotals {
        self.lost
    }

    /// Returns the numbers of segments and octets of retransmissions in flight.
    pub(crate) fn retrans_out(&self) -> SegmentTotals {
        self.resent
    }

    /// Returns the number of segments ever considered lost.
    pub(crate) fn losses(&self) -> u32 {
        self.losses
    }

    /// Returns the memory in octets that all segments use in the send buffer.
    pub(crate) fn memory(&self) -> usize {
        self.out.octets as usize + self.overhead as usize
    }

    /// Returns the number of segments in the queue.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Returns the segment at `index`, counted from the oldest.
    pub(crate) fn get(&self, index: usize) -> &SentSegment {
        &self.segments[index]
    }

    /// Returns the oldest segment of the retransmission queue.
    pub(crate) fn front(&self) -> Option<&SentSegment> {
        self.segments.front()
    }

    /// Adds a segment that was sent for the first time.
    pub(crate) fn push(&mut self, segment: SentSegment) {
        self.out.add(&segment);
        self.overhead += segment.overhead;
        self.segments.push_back(segment);
    }

    /// Removes the oldest segment if it is entirely below `una`.
    pub(crate) fn pop_acknowledged(&mut self, una: SeqNum) -> Option<SentSegment> {
        self.segments.front().filter(|first| first.end().at_or_before(una))?;
        let segment = self.segments.pop_front()?;
        self.out.remove(&segment);
        self.overhead -= segment.overhead;
        if segment.sacked {
            self.sacked.remove(&segment);
        }
        if segment.lost {
            self.lost.remove(&segment);
        }
        if segment.resent {
            self.resent.remove(&segment);
        }
        Some(segment)
    }

    /// Returns the indices of the segments entirely between `left` and `right`.
    pub(crate) fn segments_within(&self, left: SeqNum, right: SeqNum) -> Range<usize> {
        let start = self.segments.partition_point(|segment| segment.seq.before(left));
        let end = self.segments.partition_point(|segment| segment.end().at_or_before(right));
        start..end.max(start)
    }

    /// Marks a segment as SACKed for the first time.
    pub(crate) fn sack(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.resent && segment.lost {
            segment.resent = false;
            self.resent.remove(segment);
        }
        if segment.lost {
            segment.lost = false;
            self.lost.remove(segment);
        }
        segment.sacked = true;
        self.merge_reported(index);
        let segment = &self.segments[index];
        if self.sacked.segments == 0 {
            self.highest_sacked = segment.end();
        }
        self.sacked.add(segment);
        self.highest_sacked = self.highest_sacked.latest(segment.end());
    }

    /// Merges SACKed blocks. A merged block has no overhead of its own any more. Linux: tcp_shift_skb_data.
    fn merge_reported(&mut self, index: usize) {
        if self.overhead == 0 {
            return;
        }
        let end_of_block = |from: usize| {
            let max = self.segments.len().min(from + MAX_BLOCK_SEGMENTS);
            (from..max).find(|at| self.segments[*at].overhead > 0)
        };
        let this = end_of_block(index);
        let next = this.and_then(|last| end_of_block(last + 1));
        for last in [this, next].into_iter().flatten() {
            self.merge_with_previous(last);
        }
    }

    /// Merges the block that ends with segment `last` with the block before it, if both are SACKed and consist of
    /// segments of the same size.
    fn merge_with_previous(&mut self, last: usize) {
        let (mut first, min) = (last, last.saturating_sub(MAX_BLOCK_SEGMENTS));
        while first > min && self.segments[first].sacked && self.segments[first - 1].overhead == 0 {
            first -= 1;
        }
        let block = self.segments.range(first..=last);
        let Some(before) = first.checked_sub(1).map(|before| &self.segments[before]) else { return };
        let is_alike = before.sacked && before.length() == self.segments[first].length();
        if is_alike && block.clone().all(|segment| segment.sacked) {
            self.overhead -= std::mem::take(&mut self.segments[last].overhead);
        }
    }

    /// Records that the retransmission of a segment is no longer in flight.
    pub(crate) fn on_retransmission_arrived(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.resent {
            segment.resent = false;
            self.resent.remove(segment);
        }
    }

    /// Marks a segment's latest copy as lost, unless it is already marked.
    pub(crate) fn mark_lost(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.sacked || (segment.lost && !segment.resent) {
            return;
        }
        self.losses += 1;
        if let Some(departure) = segment.departure.as_deref() {
            let range = (segment.seq.0, segment.end().0);
            self.lost_departures.push((*departure, range, self.losses));
        }
        if segment.lost {
            segment.resent = false;
            self.resent.remove(segment);
        } else {
            segment.lost = true;
            self.lost.add(segment);
        }
    }

    /// Marks a segment's latest copy as lost, because segments that were sent later have been delivered. RFC 8985
    /// section 6.2, step 5.
    pub(crate) fn mark_lost_by_rack(&mut self, index: usize) {
        self.mark_lost(index);
        self.segments[index].marked_by_rack = true;
    }

    /// Returns the segments that were marked as lost since the last call: for each, its delivery state, its
    /// sequence numbers, and the number of losses up to it.
    pub(crate) fn take_lost_segment_states(&mut self) -> Vec<LostSegmentState> {
        std::mem::take(&mut self.lost_departures)
    }

    /// Records that a segment was retransmitted. A tail loss probe does not count as a retransmission in flight,
    /// because the original is not considered lost.
    pub(crate) fn note_retransmission(
        &mut self,
        index: usize,
        now: Time,
        probe: bool,
        departure: Option<Box<DeliveryAtSend>>,
    ) {
        let segment = &mut self.segments[index];
        segment.sent = now;
        (segment.marked_by_rack, segment.follows_new) = (false, false);
        segment.departure = departure;
        segment.ever_resent = true;
        if !probe && !segment.resent {
            segment.resent = true;
            self.resent.add(segment);
        }
    }

    /// Records that the segments retransmitted at `now` were sent after new data.
    pub(crate) fn note_new_data_before(&mut self, now: Time) {
        let resent = self.segments.iter_mut().filter(|segment| segment.resent && segment.sent == now);
        resent.for_each(|segment| segment.follows_new = true);
    }

    /// Returns whether segment `index` was retransmitted in the same block as the segment before it.
    pub(crate) fn is_in_block_of_previous(&self, index: usize, now: Time) -> bool {
        let before = index.checked_sub(1).map(|before| &self.segments[before]);
        before.is_some_and(|before| before.overhead == 0 && before.resent && before.sent == now)
    }

    /// Ends the block that starts with segment `index` after at most `segments` segments with the same marks. Its
    /// last segment gets this `overhead`. Linux: tcp_fragment, also by tcp_match_skb_to_sack.
    pub(crate) fn end_block(&mut self, index: usize, segments: usize, overhead: u32) {
        let marks = |at: usize| {
            let segment = &self.segments[at];
            (segment.sacked, segment.lost, segment.resent)
        };
        let max = self.segments.len().min(index + segments.max(1));
        let goes_on = |at: &usize| self.segments[*at].overhead == 0 && marks(*at + 1) == marks(index);
        let last = (index..max - 1).find(|at| !goes_on(at)).unwrap_or(max - 1);
        if self.segments[last].overhead == 0 {
            self.segments[last].overhead = overhead;
            self.overhead += overhead;
        }
    }

    /// Returns whether the segment is the last of a block and was retransmitted together with the previous segment.
    /// Only the last segment of a block has an overhead.
    pub(crate) fn is_end_of_resent_block(&self, index: usize) -> bool {
        let segment = &self.segments[index];
        let before = index.checked_sub(1).map(|before| &self.segments[before]);
        segment.overhead > 0
            && before
                .is_some_and(|before| before.overhead == 0 && before.resent && before.sent == segment.sent)
    }

    /// Removes the mark "lost" from all segments.
    pub(crate) fn clear_lost(&mut self) {
        for segment in &mut self.segments {
            segment.lost = false;
        }
        self.lost = SegmentTotals::default();
    }

    /// Removes the mark "SACKed" from all segments, because the peer has discarded the data. RFC 2018 section 8.
    pub(crate) fn clear_sacked(&mut self) {
        for segment in &mut self.segments {
            segment.sacked = false;
        }
        self.sacked = SegmentTotals::default();
    }

    /// Sets the number of duplicate acknowledgments. Without SACK, each of them stands for a segment of `mss`
    /// octets. RFC 5681 section 3.2.
    pub(crate) fn set_duplicates(&mut self, segments: u32, mss: u32) {
        // Lost segments cannot have arrived, and no more can have arrived than were sent.
        let segments = segments.min(self.out.segments - self.lost.segments);
        let octets = (segments * mss).min(self.out.octets - self.lost.octets);
        self.sacked = SegmentTotals { segments, octets };
    }

    /// Returns the end of the highest SACKed data, or `una` if no data are SACKed.
    pub(crate) fn highest_sacked(&self, una: SeqNum) -> SeqNum {
        if self.sacked.segments == 0 { una } else { self.highest_sacked }
    }

    /// Returns the estimated amount of data in flight: pipe in RFC 6675 section 4.
    pub(crate) fn in_flight(&self, unit: CongestionUnit) -> u32 {
        let left = self.sacked.count(unit) + self.lost.count(unit);
        (self.out.count(unit) + self.resent.count(unit)).saturating_sub(left)
    }

    /// Removes the acknowledged part of the oldest segment.
    pub(crate) fn trim_front(&mut self, una: SeqNum) {
        let Some(first) = self.segments.front_mut() else { return };
        if !first.seq.before(una) || first.flags.contains(Flags::SYN) {
            return;
        }
        let known = una.distance_from(first.seq);
        let _ = first.payload.split_to((known as usize).min(first.payload.len()));
        first.seq = una;
        self.out.octets -= known;
        for (flag, tally) in
            [(first.sacked, &mut self.sacked), (first.lost, &mut self.lost), (first.resent, &mut self.resent)]
        {
            if flag {
                tally.octets -= known;
            }
        }
    }

    /// Splits segment `index` after `octets`. Both parts get its marks, and a FIN stays with the second. The first
    /// part becomes a block with an `overhead`. Linux: tcp_fragment.
    pub(crate) fn split(&mut self, index: usize, octets: usize, overhead: u32) {
        let first = &mut self.segments[index];
        let mut rest = first.clone();
        rest.payload = first.payload.split_off(octets);
        rest.seq = first.seq + octets as u32;
        first.flags = Flags(first.flags.0 & !Flags::FIN.0);
        first.overhead = overhead;
        self.overhead += overhead;
        for (marked, tally) in [
            (true, &mut self.out),
            (rest.sacked, &mut self.sacked),
            (rest.lost, &mut self.lost),
            (rest.resent, &mut self.resent),
        ] {
            tally.segments += u32::from(marked);
        }
        self.segments.insert(index + 1, rest);
    }

    /// Divides the rest of a block, from segment `index` on, into segments of `octets`, as far as the marks are
    /// the same. Linux: tcp_set_skb_tso_segs after tcp_fragment.
    pub(crate) fn divide(&mut self, mut index: usize, octets: usize) {
        while let (Some(this), Some(next)) = (self.segments.get(index), self.segments.get(index + 1))
            && this.overhead == 0
            && (this.sacked, this.lost, this.resent) == (next.sacked, next.lost, next.resent)
        {
            let missing = octets.saturating_sub(this.payload.len());
            if missing == 0 {
                index += 1;
            } else if missing >= next.payload.len() {
                self.join_next(index);
            } else {
                let next = &mut self.segments[index + 1];
                let moved = next.payload.split_to(missing);
                next.seq += missing as u32;
                let this = &mut self.segments[index];
                this.payload = [&this.payload[..], &moved].concat().into();
            }
        }
    }

    /// Merges segment `index` with the next one, which has the same marks.
    fn join_next(&mut self, index: usize) {
        let Some(next) = self.segments.remove(index + 1) else { return };
        let this = &mut self.segments[index];
        this.payload = [&this.payload[..], &next.payload].concat().into();
        this.flags = this.flags | next.flags;
        this.ever_resent |= next.ever_resent;
        this.overhead = next.overhead;
        for (marked, tally) in [
            (true, &mut self.out),
            (this.sacked, &mut self.sacked),
            (this.lost, &mut self.lost),
            (this.resent, &mut self.resent),
        ] {
            tally.segments -= u32::from(marked);
        }
    }

    /// Appends the following segments to segment `index`: at most `max` of them if `max` is not 0, and only while
    /// the result has at most `space` octets and ends at most at `limit`.
    pub(crate) fn collapse(&mut self, index: usize, max: u32, space: usize, limit: SeqNum) {
        let end = if max == 0 { usize::MAX } else { index + max as usize };
        let joins = |segment: &SentSegment| !segment.sacked && !segment.flags.contains(Flags::SYN);
        let mut length = self.segments[index].payload.len();
        let mut last = index;
        while let Some(next) = self.segments.get(last + 1)
            && last < end
            && joins(next)
            && length + next.payload.len() <= space
            && next.end().at_or_before(limit)
        {
            length += next.payload.len();
            last += 1;
        }
        if last == index || !joins(&self.segments[index]) {
            return;
        }
        let mut octets = BytesMut::with_capacity(length);
        octets.extend_from_slice(&self.segments[index].payload);
        let joined: u32 = self.segments.range(index..=last).map(|segment| segment.overhead).sum();
        for absorbed in self.segments.drain(index + 1..=last).collect::<Vec<_>>() {
            octets.extend_from_slice(&absorbed.payload);
            self.absorb(index, &absorbed);
        }
        self.overhead -= joined - self.segments[index].overhead;
        self.segments[index].payload = octets.freeze();
    }

    /// Adds the counters and marks of the segment `absorbed` to segment `index`, which takes its place.
    fn absorb(&mut self, index: usize, absorbed: &SentSegment) {
        let into = &mut self.segments[index];
        into.flags = into.flags | absorbed.flags;
        into.ever_resent |= absorbed.ever_resent;
        into.first_sent = into.first_sent.max(absorbed.first_sent);
        into.overhead = into.overhead.max(absorbed.overhead);
        let merge = |tally: &mut SegmentTotals, ours: bool, theirs: bool| match (ours, theirs) {
            (true, true) => tally.segments -= 1,
            (true, false) => tally.octets += absorbed.length(),
            (false, true) => tally.remove(absorbed),
            (false, false) => {}
        };
        merge(&mut self.out, true, true);
        merge(&mut self.lost, into.lost, absorbed.lost);
        merge(&mut self.resent, into.resent, absorbed.resent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(seq: u32, length: usize) -> SentSegment {
        SentSegment::new(Time::ZERO, SeqNum(seq), Flags::ACK, Bytes::from(vec![0; length]))
    }

    fn four() -> Scoreboard {
        let mut board = Scoreboard::default();
        for i in 0..4u32 {
            board.push(segment((u32::MAX - 149).wrapping_add(100 * i), 100));
        }
        board
    }

    fn flight(board: &Scoreboard) -> (u32, u32) {
        (board.in_flight(CongestionUnit::Packets), board.in_flight(CongestionUnit::Bytes))
    }

    #[test]
    fn sack_block_covers_whole_segments_across_the_wrap() {
        let board = four();
        let start = SeqNum(u32::MAX - 149);
        assert_eq!(board.segments_within(start + 100, start + 300), 1..3);
        assert_eq!(board.segments_within(start + 101, start + 299), 2..2, "no segment is covered whole");
    }

    #[test]
    fn pipe_counts_segments_in_the_network() {
        // RFC 6675 section 4, SetPipe.
        let mut board = four();
        board.sack(2);
        board.mark_lost(0);
        assert_eq!(flight(&board), (2, 200));
        board.note_retransmission(0, Time::from_millis(1), false, None);
        assert_eq!(flight(&board), (3, 300));
        board.mark_lost(0);
        assert_eq!(board.losses(), 2, "the retransmission is lost, too");
        assert_eq!(flight(&board), (2, 200));
        board.mark_lost(0);
        assert_eq!(board.losses(), 2, "the segment is already marked lost");
    }

    #[test]
    fn merged_segment_stays_marked_as_retransmitted() {
        // RFC 6298 section 3, Karn's algorithm.
        let mut board = four();
        board.note_retransmission(1, Time::from_millis(1), false, None);
        board.collapse(0, 0, 1000, SeqNum(10_000));
        assert_eq!((board.len(), board.get(0).ever_resent, board.get(0).payload.len()), (1, true, 400));
    }

    #[test]
    fn acknowledging_everything_clears_the_counts() {
        let mut board = four();
        board.mark_lost(0);
        board.note_retransmission(0, Time::from_millis(1), false, None);
        board.sack(1);
        while board.pop_acknowledged(SeqNum(u32::MAX - 149) + 400).is_some() {}
        let none = SegmentTotals::default();
        assert_eq!((board.out, board.sacked, board.lost, board.resent), (none, none, none, none));
    }

    #[test]
    fn split_segment_keeps_its_marks_and_counts() {
        let mut board = Scoreboard::default();
        board.push(SentSegment { flags: Flags::ACK | Flags::FIN, ..segment(0, 100) });
        board.mark_lost(0);
        board.split(0, 60, 0);
        let parts: Vec<_> = board.iter().map(|part| (part.seq.0, part.length(), part.lost)).collect();
        assert_eq!(parts, [(0, 60, true), (60, 41, true)]);
        assert_eq!(
            (board.out, board.lost),
            (SegmentTotals { segments: 2, octets: 101 }, SegmentTotals { segments: 2, octets: 101 })
        );
    }

    #[test]
    fn rest_of_a_block_is_divided_again() {
        // net/ipv4/tcp_output.c tcp_retransmit_skb: retransmits segments of 90 octets from a block that was sent in segments of 100.
        let mut board = Scoreboard::default();
        for i in 0..4u32 {
            board.push(SentSegment { overhead: 10 * (i % 3 / 2), ..segment(100 * i, 100) });
            board.mark_lost(i as usize);
        }
        board.split(0, 90, 10);
        board.divide(1, 90);
        let parts: Vec<_> = board.iter().map(|part| (part.seq.0, part.length(), part.overhead)).collect();
        assert_eq!(parts, [(0, 90, 10), (90, 90, 0), (180, 90, 0), (270, 30, 10), (300, 100, 0)]);
        let all = SegmentTotals { segments: 5, octets: 400 };
        assert_eq!((board.out, board.lost, board.memory()), (all, all, 420));
    }

    #[test]
    fn segments_retransmitted_together_form_a_block() {
        // net/ipv4/tcp_output.c tcp_xmit_retransmit_queue: retransmits two segments of a block of four.
        let mut board = Scoreboard::default();
        for i in 0..4u32 {
            board.push(SentSegment { overhead: 10 * (i / 3), ..segment(100 * i, 100) });
            board.mark_lost(i as usize);
        }
        let now = Time::from_millis(1);
        board.end_block(0, 2, 10);
        let ends: Vec<_> = (0..3)
            .map(|index| {
                let goes_on = board.is_in_block_of_previous(index, now);
                board.note_retransmission(index, now, false, None);
                (goes_on, board.is_end_of_resent_block(index))
            })
            .collect();
        assert_eq!(ends, [(false, false), (true, true), (false, false)]);
        board.end_block(2, 9, 10);
        assert_eq!(board.memory(), 430, "segment 3 is not resent, so segment 2 is one block");
    }

    #[test]
    fn adjacent_sacked_blocks_are_merged() {
        // net/ipv4/tcp_input.c tcp_shift_skb_data: the send buffer then has room for another block.
        let mut board = Scoreboard::default();
        for i in 0..6u32 {
            board.push(SentSegment { overhead: 10 * (i % 2), ..segment(100 * i, 100) });
        }
        assert_eq!(board.memory(), 630);
        let memory = [2, 3, 1, 5, 4, 0].map(|index| {
            board.sack(index);
            board.memory() - 600
        });
        assert_eq!(memory, [30, 30, 20, 20, 10, 10], "a block that is not whole is not moved");
    }

    #[test]
    fn collapsed_segments_keep_the_counts_right() {
        let mut board = four();
        board.mark_lost(0);
        board.mark_lost(1);
        board.collapse(0, 0, 250, SeqNum(u32::MAX - 149) + 1000);
        assert_eq!(board.len(), 3);
        assert_eq!((board.out.segments, board.out.octets), (3, 400));
        assert_eq!((board.lost.segments, board.lost.octets), (1, 200));
        assert_eq!(board.get(0).length(), 200);
    }
}
