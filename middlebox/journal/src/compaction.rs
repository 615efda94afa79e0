//! Compaction: replaces several segments by one.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use crate::JournalError;
use crate::frame::{self, Place};
use crate::lasting::Lasting;
use crate::segment::{self, Start};

/// Octets of a frame at which the next starts. Each is synced by itself, so that a concurrent record does not
/// wait for the whole segment.
const FRAME: usize = 1 << 18;

/// Replaces the last of these segments by one that starts from nothing and has the meaning of all of them,
/// then removes the others. Nobody writes to any of them.
pub(crate) fn compact(dir: &Path, numbers: &[u64]) -> Result<(), JournalError> {
    let (last, superseded) = numbers.split_last().expect("something to compact");
    let lasting = Lasting::of(dir, numbers)?;
    segment::create(dir, *last, Start::Nothing, |file| copy(dir, numbers, &lasting, file))?;
    superseded.iter().try_for_each(|number| segment::remove(&segment::path(dir, *number)))
}

fn copy(dir: &Path, numbers: &[u64], lasting: &Lasting, file: &mut File) -> Result<(), JournalError> {
    let last = numbers[numbers.len() - 1];
    let mut place = Place::first(last);
    let mut out = Vec::with_capacity(FRAME + 1024);
    frame::begin(&mut out);
    let mut written = Ok(());
    lasting.for_each(dir, numbers, |_, octets| {
        if written.is_ok() {
            out.extend_from_slice(octets);
            if out.len() >= FRAME {
                written = flush(&mut out, &mut place, file);
            }
        }
    })?;
    let written = written.and_then(|()| flush(&mut out, &mut place, file));
    written
        .and_then(|()| file.write_all(&frame::close(place)))
        .map_err(JournalError::io("compact", &segment::path(dir, last)))
}

/// Writes these entries as frames; returns the next position, and the end of the file.
pub(crate) fn write<'a>(
    entries: impl Iterator<Item = &'a [u8]>,
    mut place: Place,
    file: &mut File,
) -> io::Result<(Place, u64)> {
    let mut out = Vec::with_capacity(FRAME + 1024);
    frame::begin(&mut out);
    for entry in entries {
        out.extend_from_slice(entry);
        if out.len() >= FRAME {
            flush(&mut out, &mut place, file)?;
        }
    }
    flush(&mut out, &mut place, file)?;
    Ok((place, file.stream_position()?))
}

/// Writes the frame if it has entries, and starts another.
fn flush(out: &mut Vec<u8>, place: &mut Place, file: &mut File) -> io::Result<()> {
    if !frame::is_empty(out) {
        *place = frame::seal(out, *place);
        file.write_all(out)?;
        file.sync_data()?;
        frame::begin(out);
    }
    Ok(())
}
