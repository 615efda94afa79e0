//! Finds the entries of a history that still matter: the last one of each current rule.
//!
//! The segments are read twice, first to find these entries, then for their content. So a rule costs only a few
//! octets of memory.

use std::collections::BTreeMap;
use std::path::Path;

use hol_simco::{Pid, RecordedRule};

use crate::JournalError;
use crate::entry::{Entry, parse_all};
use crate::frame::{Format, FramePosition, SegmentItem};
use crate::segment::{self, SegmentReader};

/// The entries of some segments that have not been superseded.
#[derive(Debug, Default)]
pub(crate) struct CurrentEntries {
    /// The number of the last entry about each current rule.
    numbers: BTreeMap<Pid, u64>,
    /// PIDs of ended rules, in the order in which they ended.
    pub ended: Vec<Pid>,
    /// Number of entries, including superseded entries.
    pub entries: u64,
    /// Where the complete frames of each segment end.
    pub ends: Vec<SegmentEnd>,
}

/// Where the complete frames of a segment end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentEnd {
    /// The offset at which the complete frames end, in octets.
    pub offset: u64,
    pub format: Format,
    /// The position of the next frame.
    pub frame_position: FramePosition,
    /// Whether the last frame marks the segment as complete.
    pub is_closed: bool,
}

impl SegmentEnd {
    /// Returns the end of the frames that `frames` has read.
    pub fn of(frames: &SegmentReader) -> Self {
        let (offset, format, frame_position) = (frames.offset(), frames.format(), frames.frame_position());
        Self { offset, format, frame_position, is_closed: frames.is_closed() }
    }
}

impl CurrentEntries {
    /// Reads the segments for the first time, and determines which entries are current.
    pub fn of(dir: &Path, numbers: &[u64]) -> Result<Self, JournalError> {
        let mut lasting_entries = Self::default();
        for number in numbers {
            let end = for_each_entry(dir, *number, |entry, _| {
                lasting_entries.entries += 1;
                match entry {
                    Entry::Current(recorded) => {
                        lasting_entries.numbers.insert(recorded.rule.pid, lasting_entries.entries);
                    }
                    Entry::Ended(pid) => {
                        lasting_entries
                            .numbers
                            .remove(&pid)
                            .ok_or("a record ends a rule that never began")?;
                        lasting_entries.ended.push(pid);
                    }
                }
                Ok(())
            })?;
            lasting_entries.ends.push(end);
        }
        Ok(lasting_entries)
    }

    /// Returns the number of current rules.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Reads the segments a second time, and calls `visit` with each current rule and the octets of its entry.
    pub fn for_each(
        &self,
        dir: &Path,
        numbers: &[u64],
        mut visit: impl FnMut(RecordedRule, &[u8]),
    ) -> Result<(), JournalError> {
        let mut number = 0;
        for segment in numbers {
            for_each_entry(dir, *segment, |entry, octets| {
                number += 1;
                match entry {
                    Entry::Current(recorded) if self.numbers.get(&recorded.rule.pid) == Some(&number) => {
                        visit(recorded, octets);
                    }
                    Entry::Current(_) | Entry::Ended(_) => {}
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Calls `visit` with each entry of a segment and its octets, and returns where the complete frames end. An error of
/// `visit` is reported as damage.
fn for_each_entry(
    dir: &Path,
    number: u64,
    visit: impl FnMut(Entry, &[u8]) -> Result<(), &'static str>,
) -> Result<SegmentEnd, JournalError> {
    let path = segment::path(dir, number);
    let (_, mut frames) = segment::read(&path, number)?;
    for_each_entry_of(&mut frames, &path, visit)?;
    Ok(SegmentEnd::of(&frames))
}

/// Calls `visit` with each entry of an open segment and its octets, up to the end of the complete frames. An error of
/// `visit` is reported as damage.
pub(crate) fn for_each_entry_of(
    frames: &mut SegmentReader,
    path: &Path,
    mut visit: impl FnMut(Entry, &[u8]) -> Result<(), &'static str>,
) -> Result<(), JournalError> {
    loop {
        match frames.next().map_err(JournalError::io("read", path))? {
            SegmentItem::Frame(offset, entries) => {
                for entry in parse_all(entries) {
                    entry
                        .ok_or("a record has a valid checksum but an unknown content")
                        .and_then(|(entry, octets)| visit(entry, octets))
                        .map_err(|problem| JournalError::Damaged {
                            path: path.to_owned(),
                            offset,
                            problem,
                        })?;
                }
            }
            SegmentItem::OutOfSequence(offset) => {
                let problem =
                    "a record does not follow the previous one: a record was removed, repeated or exchanged";
                return Err(JournalError::Damaged { path: path.to_owned(), offset, problem });
            }
            SegmentItem::End | SegmentItem::Incomplete => return Ok(()),
        }
    }
}
