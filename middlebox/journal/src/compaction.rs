//! Compaction: replaces several segments by one.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use crate::JournalError;
use crate::current_entries::CurrentEntries;
use crate::frame::{self, FramePosition};
use crate::segment::{self, SegmentStart};

/// Size in octets at which a frame ends and the next one starts. Each frame is synced separately, so that a concurrent
/// record does not have to wait until the whole segment is on the disk.
const MIN_FRAME_OCTETS: usize = 1 << 18;

/// Replaces these segments with one that contains the current rules of all of them and needs no earlier segment. The
/// new segment takes the place of the last one; then the others are removed. No thread may write to the segments
/// meanwhile.
pub(crate) fn compact(dir: &Path, numbers: &[u64]) -> Result<(), JournalError> {
    let (last, superseded) = numbers.split_last().expect("a compaction needs a segment");
    let lasting_entries = CurrentEntries::of(dir, numbers)?;
    segment::create(dir, *last, SegmentStart::Empty, |file| copy(dir, numbers, &lasting_entries, file))?;
    superseded.iter().try_for_each(|number| segment::remove(&segment::path(dir, *number)))
}

fn copy(
    dir: &Path,
    numbers: &[u64],
    lasting_entries: &CurrentEntries,
    file: &mut File,
) -> Result<(), JournalError> {
    let last = numbers[numbers.len() - 1];
    let mut frame_position = FramePosition::first_of_segment(last);
    let mut out = Vec::with_capacity(MIN_FRAME_OCTETS + 1024);
    frame::begin(&mut out);
    let mut written = Ok(());
    lasting_entries.for_each(dir, numbers, |_, octets| {
        if written.is_ok() {
            out.extend_from_slice(octets);
            if out.len() >= MIN_FRAME_OCTETS {
                written = flush(&mut out, &mut frame_position, file);
            }
        }
    })?;
    let written = written.and_then(|()| flush(&mut out, &mut frame_position, file));
    written
        .and_then(|()| file.write_all(&frame::closing_frame(frame_position)))
        .map_err(JournalError::io("compact", &segment::path(dir, last)))
}

/// Writes these entries as frames; returns the position of the next frame, and the length of the file in octets.
pub(crate) fn write<'a>(
    entries: impl Iterator<Item = &'a [u8]>,
    mut frame_position: FramePosition,
    file: &mut File,
) -> io::Result<(FramePosition, u64)> {
    let mut out = Vec::with_capacity(MIN_FRAME_OCTETS + 1024);
    frame::begin(&mut out);
    for entry in entries {
        out.extend_from_slice(entry);
        if out.len() >= MIN_FRAME_OCTETS {
            flush(&mut out, &mut frame_position, file)?;
        }
    }
    flush(&mut out, &mut frame_position, file)?;
    Ok((frame_position, file.stream_position()?))
}

/// Writes the frame if it has entries, and starts the next frame.
fn flush(out: &mut Vec<u8>, frame_position: &mut FramePosition, file: &mut File) -> io::Result<()> {
    if !frame::is_empty(out) {
        *frame_position = frame::seal(out, *frame_position);
        file.write_all(out)?;
        file.sync_data()?;
        frame::begin(out);
    }
    Ok(())
}
