//! Recovers the rules from the segments of a directory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use hol_simco::{Pid, RecordedRule};

use crate::current_entries::{CurrentEntries, SegmentEnd};
use crate::frame;
use crate::segment::{self, SegmentList, SegmentReader, SegmentStart};
use crate::{JournalError, TruncatedTail, mark};

/// The content of all segments in a directory.
pub(crate) struct RecoveredState {
    /// The current rules.
    pub rules: Vec<RecordedRule>,
    /// PIDs of ended rules.
    pub ended: Vec<Pid>,
    /// Number of entries, including superseded entries.
    pub entries: u64,
    /// The numbers of the segments that contain the entries.
    pub segments: Vec<u64>,
    /// Where the complete frames of the last segment end; `None` if there is no segment.
    pub end: Option<SegmentEnd>,
    /// The incomplete frame after the complete ones; `None` if there is none.
    pub truncated_tail: Option<TruncatedTail>,
}

/// Reads all segments that are still needed, and removes the others.
pub(crate) fn recover(dir: &Path) -> Result<RecoveredState, JournalError> {
    let mark = mark::read(dir)?;
    let SegmentList { numbers, unfinished } = segment::list(dir)?;
    let relevant = relevant_segments(dir, &numbers)?;
    let segments: Vec<u64> = relevant.into_iter().map(|(number, _)| number).collect();
    let superseded = numbers.iter().filter(|number| !segments.contains(number));
    let superseded = superseded.map(|number| segment::path(dir, *number));
    superseded.chain(unfinished).try_for_each(|path| segment::remove(&path))?;
    let lasting_entries = CurrentEntries::of(dir, &segments)?;
    let mut truncated_tail: Option<TruncatedTail> = None;
    for (at, (number, end)) in segments.iter().zip(&lasting_entries.ends).enumerate() {
        let path = segment::path(dir, *number);
        // Only the last data written can be torn: a new segment starts when the previous one is on the disk.
        if let Some(TruncatedTail { path, offset, .. }) = &truncated_tail {
            return Err(damage_error(path, *offset, NO_FRAME));
        }
        truncated_tail = truncated_tail_of(&path, end)?;
        if truncated_tail.is_none() && !end.is_closed && at + 1 < segments.len() {
            return Err(damage_error(&path, end.offset, "the end of this segment is missing"));
        }
    }
    let end = lasting_entries.ends.last().copied();
    if let Some(mark) = &mark {
        let last = segments.last().copied().zip(end.as_ref());
        mark.check(dir, last, truncated_tail.is_some())?;
    }
    if let Some(truncated_tail) = &mut truncated_tail {
        truncated_tail.is_unacknowledged = mark.is_some_and(|mark| mark.is_exact);
    }
    let mut rules = Vec::with_capacity(lasting_entries.len());
    lasting_entries.for_each(dir, &segments, |recorded, _| rules.push(recorded))?;
    Ok(RecoveredState {
        rules,
        ended: lasting_entries.ended,
        entries: lasting_entries.entries,
        segments,
        end,
        truncated_tail,
    })
}

pub(crate) const NO_FRAME: &str = "these octets are not a record, but records follow them";

pub(crate) fn damage_error(path: &Path, offset: u64, problem: &'static str) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), offset, problem }
}

/// Opens the last segment that needs no earlier segment, and all segments that follow it.
pub(crate) fn relevant_segments(
    dir: &Path,
    numbers: &[u64],
) -> Result<Vec<(u64, SegmentReader)>, JournalError> {
    let mut relevant = Vec::new();
    for (at, number) in numbers.iter().enumerate().rev() {
        let path = segment::path(dir, *number);
        let (start, frames) = segment::read(&path, *number)?;
        relevant.push((*number, frames));
        if start == SegmentStart::Empty {
            break;
        }
        if at == 0 || numbers[at - 1] + 1 != *number {
            return Err(damage_error(&path, 0, "the segment before this one is missing"));
        }
    }
    relevant.reverse();
    Ok(relevant)
}

/// Returns the octets after the complete frames of a segment, if they can be an incomplete write. Only one batch is
/// written at a time, so if a complete frame follows them, it is another kind of damage.
fn truncated_tail_of(path: &Path, end: &SegmentEnd) -> Result<Option<TruncatedTail>, JournalError> {
    let &SegmentEnd { offset: end, format, .. } = end;
    let read = || {
        let mut file = File::open(path)?;
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(end))?;
        file.read_to_end(&mut tail)?;
        Ok(tail)
    };
    let tail = read().map_err(JournalError::io("read", path))?;
    if frame::contains_frame(&tail, format) {
        return Err(damage_error(path, end, NO_FRAME));
    }
    if frame::is_one_bit_off(&tail, format) {
        return Err(damage_error(path, end, "one bit of this record has changed since it was written"));
    }
    let octets = tail.len() as u64;
    let path = path.to_owned();
    Ok((octets > 0).then_some(TruncatedTail { path, offset: end, octets, is_unacknowledged: false }))
}
