//! Which entries of a history still mean something: for each rule that holds at its end, the last.
//!
//! A history is read twice, first for this, then for what those entries say: a rule costs a few octets of memory, not
//! itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hol_simco::{Pid, Recorded};

use crate::JournalError;
use crate::entry::{Entry, parse_all};
use crate::frame::Next;
use crate::segment::{self, Reader};

/// The lasting entries of some segments.
#[derive(Debug, Default)]
pub(crate) struct Lasting {
    /// For each rule, the number of its last entry.
    numbers: BTreeMap<Pid, u64>,
    /// How many entries there are in all.
    pub entries: u64,
    /// For each segment, where its whole frames end.
    pub ends: Vec<u64>,
}

impl Lasting {
    /// Reads the segments for the first time.
    pub fn of(paths: &[PathBuf]) -> Result<Self, JournalError> {
        let mut lasting = Self::default();
        for path in paths {
            let end = for_each_entry(path, |entry, _| {
                lasting.entries += 1;
                match entry {
                    Entry::Holds(recorded) => {
                        lasting.numbers.insert(recorded.rule.pid, lasting.entries);
                    }
                    Entry::Ended(pid) => {
                        lasting.numbers.remove(&pid).ok_or("a rule ends that never began")?;
                    }
                }
                Ok(())
            })?;
            lasting.ends.push(end);
        }
        Ok(lasting)
    }

    /// How many rules hold.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Reads the same segments again: calls `visit` with each rule that holds, and with the octets of its entry.
    pub fn for_each(
        &self,
        paths: &[PathBuf],
        mut visit: impl FnMut(Recorded, &[u8]),
    ) -> Result<(), JournalError> {
        let mut number = 0;
        for path in paths {
            for_each_entry(path, |entry, octets| {
                number += 1;
                match entry {
                    Entry::Holds(recorded) if self.numbers.get(&recorded.rule.pid) == Some(&number) => {
                        visit(recorded, octets);
                    }
                    Entry::Holds(_) | Entry::Ended(_) => {}
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Calls `visit` with each entry of a segment and its octets, and returns where its whole frames end. What `visit` has
/// against an entry is damage.
fn for_each_entry(
    path: &Path,
    visit: impl FnMut(Entry, &[u8]) -> Result<(), &'static str>,
) -> Result<u64, JournalError> {
    let (_, mut frames) = segment::read(path)?;
    for_each_entry_of(&mut frames, path, visit)?;
    Ok(frames.offset())
}

/// The same for a segment that is open.
pub(crate) fn for_each_entry_of(
    frames: &mut Reader,
    path: &Path,
    mut visit: impl FnMut(Entry, &[u8]) -> Result<(), &'static str>,
) -> Result<(), JournalError> {
    loop {
        match frames.next().map_err(JournalError::io("read", path))? {
            Next::Frame(offset, entries) => {
                for entry in parse_all(entries) {
                    entry
                        .ok_or("a record is whole, but says nothing known")
                        .and_then(|(entry, octets)| visit(entry, octets))
                        .map_err(|what| JournalError::Damaged { path: path.to_owned(), offset, what })?;
                }
            }
            Next::End | Next::Broken => return Ok(()),
        }
    }
}
