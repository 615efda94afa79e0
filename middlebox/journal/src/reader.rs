//! Reads a journal without disturbing the process that records there.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use hol_simco::RecordedRule;

use crate::current_entries::{SegmentEnd, for_each_entry_of};
use crate::entry::Entry;
use crate::recovery::{NO_FRAME, damage_error, relevant_segments};
use crate::{JournalError, mark, segment};

/// Maximum number of attempts to open the segments while compactions remove them. A compaction takes much longer than
/// opening the segments.
const MAX_RETRIES: usize = 10;

/// Returns the current rules in the journal of this directory, in order of PID, including expired rules.
///
/// Nothing is written, locked or removed: another process may record meanwhile, and the result may lack its concurrent
/// records.
pub fn read(dir: &Path) -> Result<Vec<RecordedRule>, JournalError> {
    let mut attempts = 1;
    loop {
        match read_once(dir) {
            // A segment was compacted between being listed and being opened.
            Err(JournalError::Io { source, path, .. })
                if source.kind() == ErrorKind::NotFound && path != dir && attempts < MAX_RETRIES =>
            {
                attempts += 1;
            }
            read => return read,
        }
    }
}

fn read_once(dir: &Path) -> Result<Vec<RecordedRule>, JournalError> {
    // The mark is read before the segments, which therefore contain at least as much.
    let mark = mark::read(dir)?;
    let numbers = segment::list(dir)?.numbers;
    let Some(last) = numbers.last().copied() else {
        mark.map_or(Ok(()), |mark| mark.check(dir, None, false))?;
        return Err(JournalError::NotFound(dir.to_owned()));
    };
    let mut rules = BTreeMap::new();
    // Open files stay unchanged, even after compaction. Only the last segment grows, and may end in a partial
    // frame.
    for (number, mut frames) in relevant_segments(dir, &numbers)? {
        let path = segment::path(dir, number);
        for_each_entry_of(&mut frames, &path, |entry, _| {
            match entry {
                Entry::Current(recorded) => drop(rules.insert(recorded.rule.pid, recorded)),
                Entry::Ended(pid) => drop(rules.remove(&pid).ok_or("a record ends a rule that never began")?),
            }
            Ok(())
        })?;
        if number == last {
            let end = SegmentEnd::of(&frames);
            mark.map_or(Ok(()), |mark| mark.check(dir, Some((number, &end)), !frames.is_at_end()))?;
        } else if !frames.is_at_end() {
            return Err(damage_error(&path, frames.offset(), NO_FRAME));
        }
    }
    Ok(rules.into_values().collect())
}
