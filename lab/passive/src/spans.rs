//! A map from ranges of a sequence space to values; a value is never replaced.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

/// Disjoint ranges, each with a value.
#[derive(Debug)]
pub(crate) struct Spans<T> {
    /// End and value of each span, by start.
    spans: BTreeMap<u64, (u64, T)>,
    total_length: u64,
}

/// Parts of one range, in ascending order.
pub(crate) type Parts = SmallVec<[Range<u64>; 1]>;

impl<T> Default for Spans<T> {
    fn default() -> Self {
        Self { spans: BTreeMap::new(), total_length: 0 }
    }
}

impl<T: Copy> Spans<T> {
    /// Sets `value` for the parts of the range without a value, and returns these parts.
    pub fn fill(&mut self, range: Range<u64>, value: T) -> Parts {
        let parts = self.gaps(range);
        for part in &parts {
            self.spans.insert(part.start, (part.end, value));
            self.total_length += part.end - part.start;
        }
        parts
    }

    /// Returns the parts of a range without a value, in at most as many steps as there are spans in it.
    pub fn gaps(&self, range: Range<u64>) -> Parts {
        let mut gaps = Parts::new();
        // Most ranges are beyond all others.
        let end = self.spans.last_key_value().map_or(0, |(_, (end, _))| *end);
        if end <= range.start && range.start < range.end {
            gaps.push(range);
            return gaps;
        }
        let mut begin = range.start;
        for (span, _) in self.overlapping(range.clone()) {
            if begin < span.start {
                gaps.push(begin..span.start);
            }
            begin = span.end;
        }
        if begin < range.end {
            gaps.push(begin..range.end);
        }
        gaps
    }

    /// Returns the part of the range before the next span, without the part that a span at its start covers;
    /// `None` if nothing is left.
    pub fn leading_gap(&self, range: Range<u64>) -> Option<Range<u64>> {
        let before = self.spans.range(..=range.start).next_back().map_or(0, |(_, (end, _))| *end);
        let begin = range.start.max(before);
        let behind = self.spans.range(begin..).next().map_or(range.end, |(begin, _)| *begin);
        let end = range.end.min(behind);
        (begin < end).then_some(begin..end)
    }

    /// Returns the whole spans that overlap with the range.
    pub fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, T)> {
        let before = self.spans.range(..range.start).next_back().filter(|(_, (end, _))| *end > range.start);
        let from = range.start.min(range.end);
        let inside = self.spans.range(from..range.end);
        before.into_iter().chain(inside).map(|(begin, (end, value))| (*begin..*end, *value))
    }

    /// Returns the value at one position.
    pub fn value_at(&self, place: u64) -> Option<T> {
        let (_, (end, value)) = self.spans.range(..=place).next_back()?;
        (place < *end).then_some(*value)
    }

    /// Returns the end and the value of each span from 0 to the first gap.
    pub fn leading_run(&self) -> impl Iterator<Item = (u64, T)> {
        let mut edge = 0;
        self.spans.iter().map_while(move |(begin, (end, value))| {
            let follows = *begin == edge;
            edge = *end;
            follows.then_some((*end, *value))
        })
    }

    /// Returns the total length of all spans.
    pub const fn total(&self) -> u64 {
        self.total_length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_a_span_keeps_existing_values() {
        let mut spans = Spans::default();
        assert_eq!(spans.fill(10..20, 'a').first(), Some(&(10..20)));
        assert_eq!(spans.fill(0..40, 'b')[..], [0..10, 20..40]);
        assert!(spans.fill(5..35, 'c').is_empty() && spans.fill(9..9, 'c').is_empty());
        assert_eq!(spans.fill(30..50, 'd').last(), Some(&(40..50)));
        let run: Vec<_> = spans.leading_run().collect();
        assert_eq!(run, [(10, 'b'), (20, 'a'), (40, 'b'), (50, 'd')]);
        assert_eq!(
            [0, 10, 49, 50].map(|place| spans.value_at(place)),
            [Some('b'), Some('a'), Some('d'), None]
        );
        assert_eq!(spans.total(), 50);
    }

    #[test]
    fn leading_run_ends_at_the_first_gap() {
        let mut spans = Spans::default();
        [0..2, 2..3, 4..9].into_iter().for_each(|range| drop(spans.fill(range, ())));
        assert_eq!(spans.leading_run().map(|(end, ())| end).collect::<Vec<_>>(), [2, 3]);
        let room = [3..9, 0..5, 8..20, 30..31].map(|range| spans.leading_gap(range));
        assert_eq!(room, [Some(3..4), None, Some(9..20), Some(30..31)]);
        assert_eq!(spans.overlapping(1..5).map(|(span, ())| span).collect::<Vec<_>>(), [0..2, 2..3, 4..9]);
    }
}
