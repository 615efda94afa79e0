//! The received TSNs. RFC 9260 section 6.2.

use std::collections::VecDeque;

use hol_wire::sctp::{GapAckBlock, Tsn};
use smallvec::SmallVec;

/// Maximum number of duplicate TSNs that are stored for the next SACK.
pub(crate) const MAX_DUPLICATES: usize = 16;

/// A range of consecutive received TSNs that follows a gap, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TsnRange {
    /// The first TSN of the range.
    first: Tsn,
    /// The last TSN of the range.
    last: Tsn,
}

/// The cumulative TSN, and the TSNs received beyond it.
#[derive(Debug)]
pub(crate) struct TsnMap {
    cumulative: Tsn,
    /// The ranges of received TSNs beyond the first gap, in ascending order.
    ranges: VecDeque<TsnRange>,
    duplicates: SmallVec<[Tsn; 2]>,
    /// Maximum distance of a TSN from the cumulative TSN.
    max_distance: u32,
}

/// How a TSN that arrives relates to the TSNs received before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    New,
    Duplicate,
    /// The TSN is beyond the maximum distance from the cumulative TSN.
    TooFar,
}

impl TsnMap {
    /// Creates an empty map; `initial` is the first TSN.
    pub(crate) fn new(initial: Tsn, max_distance: u16) -> Self {
        let max_distance = u32::from(max_distance);
        Self { cumulative: initial - 1, ranges: VecDeque::new(), duplicates: SmallVec::new(), max_distance }
    }

    pub(crate) fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    pub(crate) fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    pub(crate) fn classify(&self, tsn: Tsn) -> Arrival {
        if tsn.at_or_before(self.cumulative) {
            return Arrival::Duplicate;
        }
        if tsn.distance_from(self.cumulative) > self.max_distance {
            return Arrival::TooFar;
        }
        // New data mostly belong to the last range, or follow it.
        let range = self.ranges.iter().rev().find(|range| range.first.at_or_before(tsn));
        if range.is_some_and(|range| tsn.at_or_before(range.last)) {
            Arrival::Duplicate
        } else {
            Arrival::New
        }
    }

    /// Adds a TSN for which [`classify`](Self::classify) has returned that it is new.
    pub(crate) fn insert(&mut self, tsn: Tsn) {
        if tsn == self.cumulative.next() && self.ranges.is_empty() {
            self.cumulative = tsn;
            return;
        }
        let behind = self.ranges.iter().rev().take_while(|range| range.first.after(tsn)).count();
        let at = self.ranges.len() - behind;
        let joins_left = at > 0 && self.ranges[at - 1].last.next() == tsn;
        let joins_right = behind > 0 && self.ranges[at].first == tsn.next();
        match (joins_left, joins_right) {
            (true, true) => {
                self.ranges[at - 1].last = self.ranges[at].last;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].last = tsn,
            (false, true) => self.ranges[at].first = tsn,
            (false, false) => self.ranges.insert(at, TsnRange { first: tsn, last: tsn }),
        }
        self.advance_over_ranges();
    }

    /// Treats all TSNs up to `tsn` as received. RFC 3758 section 3.6.
    pub(crate) fn advance_to(&mut self, tsn: Tsn) {
        self.cumulative = self.cumulative.latest(tsn);
        self.advance_over_ranges();
    }

    /// Advances the cumulative TSN over the ranges that now follow it without a gap.
    fn advance_over_ranges(&mut self) {
        while let Some(range) = self.ranges.front()
            && range.first.at_or_before(self.cumulative.next())
        {
            self.cumulative = self.cumulative.latest(range.last);
            self.ranges.pop_front();
        }
    }

    pub(crate) fn note_duplicate(&mut self, tsn: Tsn) {
        if self.duplicates.len() < MAX_DUPLICATES {
            self.duplicates.push(tsn);
        }
    }

    pub(crate) fn take_duplicates(&mut self) -> SmallVec<[Tsn; 2]> {
        std::mem::take(&mut self.duplicates)
    }

    pub(crate) fn gap_ack_blocks(&self, at_most: u16) -> SmallVec<[GapAckBlock; 4]> {
        let offset = |tsn: Tsn| u16::try_from(tsn.distance_from(self.cumulative)).unwrap_or(u16::MAX);
        let block = |range: &TsnRange| GapAckBlock { start: offset(range.first), end: offset(range.last) };
        self.ranges.iter().take(usize::from(at_most)).map(block).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(map: &TsnMap) -> Vec<(u16, u16)> {
        map.gap_ack_blocks(u16::MAX).iter().map(|block| (block.start, block.end)).collect()
    }

    #[test]
    fn gaps_open_join_and_close_across_the_wrap() {
        // RFC 9260 sections 3.3.4 and 1.6.
        let mut map = TsnMap::new(Tsn(u32::MAX - 1), u16::MAX);
        let base = Tsn(u32::MAX - 2);
        for offset in [3, 5, 2] {
            map.insert(base + offset);
        }
        assert_eq!(blocks(&map), [(2, 3), (5, 5)]);
        map.insert(base + 4);
        assert_eq!(blocks(&map), [(2, 5)]);
        map.insert(base + 1);
        assert_eq!((map.cumulative(), map.has_gap()), (base + 5, false));
    }

    #[test]
    fn tsn_is_duplicate_if_received_and_too_far_beyond_the_map() {
        let mut map = TsnMap::new(Tsn(10), u16::MAX);
        map.insert(Tsn(12));
        let classes = [9, 10, 11, 12, 13, 9 + 65535, 9 + 65536].map(|tsn| map.classify(Tsn(tsn)));
        use Arrival::{Duplicate, New, TooFar};
        assert_eq!(classes, [Duplicate, New, New, Duplicate, New, New, TooFar]);
    }

    #[test]
    fn forward_tsn_closes_gaps() {
        // RFC 3758 section 3.6.
        let mut map = TsnMap::new(Tsn(1), u16::MAX);
        map.insert(Tsn(4));
        map.insert(Tsn(7));
        map.advance_to(Tsn(3));
        assert_eq!((map.cumulative(), blocks(&map)), (Tsn(4), vec![(3, 3)]));
        map.advance_to(Tsn(2));
        assert_eq!(map.cumulative(), Tsn(4));
    }
}
