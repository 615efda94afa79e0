//! What the segments of a directory come to.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use hol_simco::{Pid, Recorded};

use crate::entry::{Entry, parse_all};
use crate::frame::{self, Next};
use crate::segment::{self, Start};
use crate::{JournalError, Torn};

/// A history, read to its end.
pub(crate) struct Recovered {
    /// The rules that hold.
    pub rules: BTreeMap<Pid, Recorded>,
    /// How many entries said so.
    pub entries: u64,
    /// The segments that say so.
    pub segments: Vec<u64>,
    /// Octets of the last one up to the end of its whole frames.
    pub end: u64,
    /// What lies behind those.
    pub torn: Option<Torn>,
}

/// Reads all segments that count, and removes those that do not.
pub(crate) fn recover(dir: &Path) -> Result<Recovered, JournalError> {
    let segments = segments_that_count(dir)?;
    let mut recovered = Recovered { rules: BTreeMap::new(), entries: 0, segments, end: 0, torn: None };
    for number in &recovered.segments {
        // Only what was written last can be torn: a new segment is begun when the one before is on the disk.
        if let Some(torn) = &recovered.torn {
            return Err(damaged(&torn.path, torn.offset, NO_FRAME));
        }
        let path = segment::path(dir, *number);
        recovered.end = for_each_entry(&path, |entry, _| {
            recovered.entries += 1;
            match entry {
                Entry::Holds(recorded) => {
                    recovered.rules.insert(recorded.rule.pid, recorded);
                    Ok(())
                }
                Entry::Ended(pid) => {
                    recovered.rules.remove(&pid).map(drop).ok_or("a rule ends that never began")
                }
            }
        })?;
        recovered.torn = torn_tail(path, recovered.end)?;
    }
    Ok(recovered)
}

const NO_FRAME: &str = "these octets are no record, but there are more behind them";

fn damaged(path: &Path, offset: u64, what: &'static str) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), offset, what }
}

/// The last segment that begins from nothing and those behind it.
fn segments_that_count(dir: &Path) -> Result<Vec<u64>, JournalError> {
    let mut numbers = segment::list(dir)?;
    let mut first = numbers.len();
    while first > 0 {
        first -= 1;
        let path = segment::path(dir, numbers[first]);
        if segment::read(&path)?.0 == Start::Nothing {
            break;
        }
        if first == 0 || numbers[first - 1] + 1 != numbers[first] {
            return Err(damaged(&path, 0, "the segment before this one is missing"));
        }
    }
    let counting = numbers.split_off(first);
    for superseded in numbers {
        segment::remove(&segment::path(dir, superseded))?;
    }
    Ok(counting)
}

/// Calls `visit` with each entry of a segment and its octets, and returns where its whole frames end. What `visit` has
/// against an entry is damage.
pub(crate) fn for_each_entry(
    path: &Path,
    mut visit: impl FnMut(Entry, &[u8]) -> Result<(), &'static str>,
) -> Result<u64, JournalError> {
    let (_, mut frames) = segment::read(path)?;
    loop {
        match frames.next().map_err(JournalError::io("read", path))? {
            Next::Frame(offset, entries) => {
                for entry in parse_all(entries) {
                    entry
                        .ok_or("a record is whole, but says nothing known")
                        .and_then(|(entry, octets)| visit(entry, octets))
                        .map_err(|what| damaged(path, offset, what))?;
                }
            }
            Next::End | Next::Broken => return Ok(frames.offset()),
        }
    }
}

/// What lies behind the whole frames of a segment, if that can have been torn: one batch is written at a time, so a
/// whole frame behind it says that something else has happened.
fn torn_tail(path: PathBuf, end: u64) -> Result<Option<Torn>, JournalError> {
    let read = || {
        let mut file = File::open(&path)?;
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(end))?;
        file.read_to_end(&mut tail)?;
        Ok(tail)
    };
    let tail = read().map_err(JournalError::io("read", &path))?;
    if frame::any_in(&tail) {
        return Err(damaged(&path, end, NO_FRAME));
    }
    let octets = tail.len() as u64;
    Ok((octets > 0).then_some(Torn { path, offset: end, octets }))
}
