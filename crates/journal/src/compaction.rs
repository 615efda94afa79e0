//! Compaction: what several segments come to, in one.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::JournalError;
use crate::frame;
use crate::lasting::Lasting;
use crate::segment::{self, Start};

/// Octets of a frame at which the next begins. Each is synced by itself, so that a record made meanwhile does not wait
/// for the whole segment.
const FRAME: usize = 1 << 18;

/// Makes the last of these segments one that begins from nothing and means what all of them meant, then removes the
/// others. Nobody writes to any of them.
pub(crate) fn compact(dir: &Path, numbers: &[u64]) -> Result<(), JournalError> {
    let paths: Vec<PathBuf> = numbers.iter().map(|number| segment::path(dir, *number)).collect();
    let (last, superseded) = numbers.split_last().expect("something to compact");
    let lasting = Lasting::of(&paths)?;
    segment::create(dir, *last, Start::Nothing, |file| copy(&paths, &lasting, file))?;
    superseded.iter().try_for_each(|number| segment::remove(&segment::path(dir, *number)))
}

fn copy(paths: &[PathBuf], lasting: &Lasting, file: &mut File) -> Result<(), JournalError> {
    let mut out = Vec::with_capacity(FRAME + 1024);
    frame::begin(&mut out);
    let mut written = Ok(());
    lasting.for_each(paths, |_, octets| {
        if written.is_ok() {
            out.extend_from_slice(octets);
            if out.len() >= FRAME {
                written = flush(&mut out, file);
            }
        }
    })?;
    written.and_then(|()| flush(&mut out, file)).map_err(JournalError::io("compact", &paths[paths.len() - 1]))
}

/// Writes the frame if it has entries, and begins another.
fn flush(out: &mut Vec<u8>, file: &mut File) -> io::Result<()> {
    if !frame::is_empty(out) {
        frame::seal(out);
        file.write_all(out)?;
        file.sync_data()?;
        frame::begin(out);
    }
    Ok(())
}
