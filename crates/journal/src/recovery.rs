//! What the segments of a directory come to.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use hol_simco::Recorded;

use crate::frame;
use crate::lasting::Lasting;
use crate::segment::{self, Listed, Reader, Start};
use crate::{JournalError, Torn};

/// A history, read to its end.
pub(crate) struct Recovered {
    /// The rules that hold.
    pub rules: Vec<Recorded>,
    /// How many entries said so.
    pub entries: u64,
    /// The segments that have them.
    pub segments: Vec<u64>,
    /// Octets of the last one up to the end of its whole frames.
    pub end: u64,
    /// What lies behind those.
    pub torn: Option<Torn>,
}

/// Reads all segments that count, and removes those that do not.
pub(crate) fn recover(dir: &Path) -> Result<Recovered, JournalError> {
    let Listed { numbers, unfinished } = segment::list(dir)?;
    let counting = segments_that_count(dir, &numbers)?;
    let segments: Vec<u64> = counting.into_iter().map(|(number, _)| number).collect();
    let superseded = numbers.iter().filter(|number| !segments.contains(number));
    let superseded = superseded.map(|number| segment::path(dir, *number));
    superseded.chain(unfinished).try_for_each(|path| segment::remove(&path))?;
    let paths: Vec<PathBuf> = segments.iter().map(|number| segment::path(dir, *number)).collect();
    let lasting = Lasting::of(&paths)?;
    let mut torn = None;
    for (path, end) in paths.iter().zip(&lasting.ends) {
        // Only what was written last can be torn: a new segment is begun when the one before is on the disk.
        if let Some(Torn { path, offset, .. }) = &torn {
            return Err(damaged(path, *offset, NO_FRAME));
        }
        torn = torn_tail(path, *end)?;
    }
    let mut rules = Vec::with_capacity(lasting.len());
    lasting.for_each(&paths, |recorded, _| rules.push(recorded))?;
    let end = lasting.ends.last().copied().unwrap_or_default();
    Ok(Recovered { rules, entries: lasting.entries, segments, end, torn })
}

pub(crate) const NO_FRAME: &str = "these octets are no record, but there are more behind them";

pub(crate) fn damaged(path: &Path, offset: u64, what: &'static str) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), offset, what }
}

/// The last segment that begins from nothing and those behind it, open.
pub(crate) fn segments_that_count(dir: &Path, numbers: &[u64]) -> Result<Vec<(u64, Reader)>, JournalError> {
    let mut counting = Vec::new();
    for (at, number) in numbers.iter().enumerate().rev() {
        let path = segment::path(dir, *number);
        let (start, frames) = segment::read(&path)?;
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

/// What lies behind the whole frames of a segment, if that can have been torn: one batch is written at a time, so a
/// whole frame behind it says that something else has happened.
fn torn_tail(path: &Path, end: u64) -> Result<Option<Torn>, JournalError> {
    let read = || {
        let mut file = File::open(path)?;
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(end))?;
        file.read_to_end(&mut tail)?;
        Ok(tail)
    };
    let tail = read().map_err(JournalError::io("read", path))?;
    if frame::any_in(&tail) {
        return Err(damaged(path, end, NO_FRAME));
    }
    let octets = tail.len() as u64;
    Ok((octets > 0).then(|| Torn { path: path.to_owned(), offset: end, octets }))
}
