//! Orders pieces of data by sequence number.

use std::collections::BTreeMap;
use std::ops::Range;

/// Stores pieces until everything before them has arrived.
#[derive(Debug)]
pub(crate) struct Reassembly<T> {
    next: u64,
    /// A piece that arrived in order, as most do.
    ready: Option<(u64, T)>,
    /// The waiting pieces with their ends, by start.
    waiting: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Reassembly<T> {
    fn default() -> Self {
        Self { next: 0, ready: None, waiting: BTreeMap::new() }
    }
}

impl<T> Reassembly<T> {
    /// Adds a piece that does not overlap any other.
    pub fn insert(&mut self, range: Range<u64>, piece: T) {
        if range.start == self.next && self.ready.is_none() {
            self.next = range.end;
            self.ready = Some((range.start, piece));
        } else {
            self.waiting.insert(range.start, (range.end, piece));
        }
    }

    /// Returns the next piece with its start.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        if let Some(ready) = self.ready.take() {
            return Some(ready);
        }
        let entry = self.waiting.first_entry().filter(|entry| *entry.key() == self.next)?;
        let (begin, (end, piece)) = entry.remove_entry();
        self.next = end;
        Some((begin, piece))
    }

    /// Returns whether no piece waits for an earlier one.
    pub fn is_whole(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piece_waits_for_earlier_pieces() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(3..5, "de");
        assert_eq!((reassembly.pop(), reassembly.is_whole()), (None, false));
        reassembly.insert(0..3, "abc");
        assert_eq!([reassembly.pop(), reassembly.pop()], [Some((0, "abc")), Some((3, "de"))]);
        assert!(reassembly.is_whole() && reassembly.pop().is_none());
    }
}
