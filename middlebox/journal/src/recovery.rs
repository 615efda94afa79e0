//! Recovers the rules from the segments of a directory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use hol_simco::{Pid, Recorded};

use crate::frame;
use crate::lasting::{Lasting, SegmentEnd};
use crate::segment::{self, Listed, Reader, Start};
use crate::{JournalError, TruncatedTail, mark};

/// The result of a complete history.
pub(crate) struct Recovered {
    /// The current rules.
    pub rules: Vec<Recorded>,
    /// PIDs of ended rules.
    pub ended: Vec<Pid>,
    /// Number of entries.
    pub entries: u64,
    /// The segments with these entries.
    pub segments: Vec<u64>,
    /// The end of the last one's complete frames; `None` if there is none.
    pub end: Option<SegmentEnd>,
    /// What follows them.
    pub torn: Option<TruncatedTail>,
}

/// Reads all relevant segments, and removes the others.
pub(crate) fn recover(dir: &Path) -> Result<Recovered, JournalError> {
    let mark = mark::read(dir)?;
    let Listed { numbers, unfinished } = segment::list(dir)?;
    let counting = segments_that_count(dir, &numbers)?;
    let segments: Vec<u64> = counting.into_iter().map(|(number, _)| number).collect();
    let superseded = numbers.iter().filter(|number| !segments.contains(number));
    let superseded = superseded.map(|number| segment::path(dir, *number));
    superseded.chain(unfinished).try_for_each(|path| segment::remove(&path))?;
    let lasting = Lasting::of(dir, &segments)?;
    let mut torn: Option<TruncatedTail> = None;
    for (at, (number, end)) in segments.iter().zip(&lasting.ends).enumerate() {
        let path = segment::path(dir, *number);
        // Only the last data written can be torn: a new segment starts when the previous one is on the disk.
        if let Some(TruncatedTail { path, offset, .. }) = &torn {
            return Err(damaged(path, *offset, NO_FRAME));
        }
        torn = torn_tail(&path, end)?;
        if torn.is_none() && !end.is_closed && at + 1 < segments.len() {
            return Err(damaged(&path, end.offset, "the last records are missing"));
        }
    }
    let end = lasting.ends.last().copied();
    if let Some(mark) = &mark {
        let last = segments.last().copied().zip(end.as_ref());
        mark.check(dir, last, torn.is_some())?;
    }
    if let Some(torn) = &mut torn {
        torn.is_unacknowledged = mark.is_some_and(|mark| mark.is_exact);
    }
    let mut rules = Vec::with_capacity(lasting.len());
    lasting.for_each(dir, &segments, |recorded, _| rules.push(recorded))?;
    Ok(Recovered { rules, ended: lasting.ended, entries: lasting.entries, segments, end, torn })
}

pub(crate) const NO_FRAME: &str = "these octets are no record, but there are more behind them";

pub(crate) fn damaged(path: &Path, offset: u64, what: &'static str) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), offset, what }
}

/// Opens the last segment that starts from nothing and those after it.
pub(crate) fn segments_that_count(dir: &Path, numbers: &[u64]) -> Result<Vec<(u64, Reader)>, JournalError> {
    let mut counting = Vec::new();
    for (at, number) in numbers.iter().enumerate().rev() {
        let path = segment::path(dir, *number);
        let (start, frames) = segment::read(&path, *number)?;
        counting.push((*number, frames));
        if start == Start::Nothing {
            break;
        }
        if at == 0 || numbers[at - 1] + 1 != *number {
            return Err(damaged(&path, 0, "the segment before this one is missing"));
        }
    }
    counting.reverse();
    Ok(counting)
}

/// Returns what follows the complete frames of a segment, if it can be torn: one batch is written at a time,
/// so a complete frame after it means another kind of damage.
fn torn_tail(path: &Path, end: &SegmentEnd) -> Result<Option<TruncatedTail>, JournalError> {
    let &SegmentEnd { offset: end, format, .. } = end;
    let read = || {
        let mut file = File::open(path)?;
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(end))?;
        file.read_to_end(&mut tail)?;
        Ok(tail)
    };
    let tail = read().map_err(JournalError::io("read", path))?;
    if frame::any_in(&tail, format) {
        return Err(damaged(path, end, NO_FRAME));
    }
    if frame::is_one_bit_off(&tail, format) {
        return Err(damaged(path, end, "a bit of this record is another than was written"));
    }
    let octets = tail.len() as u64;
    let path = path.to_owned();
    Ok((octets > 0).then_some(TruncatedTail { path, offset: end, octets, is_unacknowledged: false }))
}
