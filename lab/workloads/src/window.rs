//! Notes on unsettled messages, by message number.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Entries on consecutive messages; entries on settled messages are removed at the front.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EntryWindow<T> {
    start: u32,
    notes: VecDeque<T>,
}

impl<T> Default for EntryWindow<T> {
    fn default() -> Self {
        Self { start: 0, notes: VecDeque::new() }
    }
}

impl<T> EntryWindow<T> {
    /// Reserves room for this many entries.
    pub(crate) fn reserve(&mut self, notes: usize) {
        self.notes.reserve(notes);
    }

    /// Returns the number of the first message.
    pub(crate) fn start(&self) -> u32 {
        self.start
    }

    /// Returns the number after that of the last message.
    pub(crate) fn end(&self) -> u32 {
        self.start + self.notes.len() as u32
    }

    /// Adds the entry on the next message and returns the message's number.
    pub(crate) fn push(&mut self, note: T) -> u32 {
        self.notes.push_back(note);
        self.end() - 1
    }

    /// Returns the entry on the first message.
    pub(crate) fn first(&self) -> Option<&T> {
        self.notes.front()
    }

    /// Returns the entry on a message.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.notes.get(number.checked_sub(self.start)? as usize)
    }

    /// Returns the entry on a message, mutable.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.notes.get_mut(number.checked_sub(self.start)? as usize)
    }

    /// Returns all entries in order.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &T> {
        self.notes.iter()
    }

    /// Returns all entries in order, mutable.
    pub(crate) fn notes_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.notes.iter_mut()
    }

    /// Removes the oldest entry and returns it with the number of its message.
    pub(crate) fn pop(&mut self) -> Option<(u32, T)> {
        let oldest = self.notes.pop_front()?;
        self.start += 1;
        Some((self.start - 1, oldest))
    }

    /// Removes the first message, even if it has no entry; returns its entry, if any.
    pub(crate) fn skip(&mut self) -> Option<T> {
        self.start += 1;
        self.notes.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_after_removals() {
        let mut window = EntryWindow::default();
        assert_eq!((window.push('a'), window.push('b'), window.pop()), (0, 1, Some((0, 'a'))));
        assert_eq!((window.get(0), window.get(1), window.get(2)), (None, Some(&'b'), None));
        assert_eq!((window.skip(), window.skip(), window.pop()), (Some('b'), None, None));
        assert_eq!((window.end(), window.push('d'), window.first()), (3, 3, Some(&'d')));
    }
}
