//! Compaction: what several segments come to, in one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use hol_simco::Pid;

use crate::JournalError;
use crate::entry::Entry;
use crate::frame;
use crate::recovery::for_each_entry;
use crate::segment::{self, Start};

/// Octets of a frame at which the next begins. Each is synced by itself, so that a record made meanwhile does not wait
/// for the whole segment.
const FRAME: usize = 1 << 18;

/// Makes the last of these segments one that begins from nothing and means what all of them meant, then removes the
/// others. Nobody writes to any of them.
///
/// They are read twice: first for which entry of each rule is the last, then for its octets. A rule costs a few octets
/// of memory in the meantime.
pub(crate) fn compact(dir: &Path, numbers: &[u64]) -> Result<(), JournalError> {
    let paths: Vec<PathBuf> = numbers.iter().map(|number| segment::path(dir, *number)).collect();
    let (last, superseded) = numbers.split_last().expect("something to compact");
    let lasting = last_entries(&paths)?;
    segment::create(dir, *last, Start::Nothing, |file| copy(&paths, &lasting, file))?;
    superseded.iter().try_for_each(|number| segment::remove(&segment::path(dir, *number)))
}

/// For each rule that holds at the end, the number of the entry that says what it is.
fn last_entries(paths: &[PathBuf]) -> Result<BTreeMap<Pid, u64>, JournalError> {
    let mut lasting = BTreeMap::new();
    let mut number = 0;
    for path in paths {
        for_each_entry(path, |entry, _| {
            number += 1;
            match entry {
                Entry::Holds(recorded) => lasting.insert(recorded.rule.pid, number),
                Entry::Ended(pid) => lasting.remove(&pid),
            };
            Ok(())
        })?;
    }
    Ok(lasting)
}

fn copy(paths: &[PathBuf], lasting: &BTreeMap<Pid, u64>, file: &mut File) -> Result<(), JournalError> {
    let mut out = Vec::with_capacity(FRAME + 1024);
    frame::begin(&mut out);
    let mut number = 0;
    for path in paths {
        let mut written = Ok(());
        for_each_entry(path, |entry, octets| {
            number += 1;
            if let Entry::Holds(recorded) = entry
                && lasting.get(&recorded.rule.pid) == Some(&number)
                && written.is_ok()
            {
                out.extend_from_slice(octets);
                if out.len() >= FRAME {
                    written = flush(&mut out, file);
                }
            }
            Ok(())
        })?;
        written.map_err(JournalError::io("compact", path))?;
    }
    flush(&mut out, file).map_err(JournalError::io("compact", &paths[paths.len() - 1]))
}

/// Writes the frame if it has entries, and begins another.
fn flush(out: &mut Vec<u8>, file: &mut File) -> std::io::Result<()> {
    if !frame::is_empty(out) {
        frame::seal(out);
        file.write_all(out)?;
        file.sync_data()?;
        frame::begin(out);
    }
    Ok(())
}
