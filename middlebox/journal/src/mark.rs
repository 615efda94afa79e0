//! The high-water mark: the end of the journal when its last batch was on the disk.
//!
//! Without it, a journal that lost its end would look complete. The mark is a file of its own,
//! written after each sync, so it is never ahead of the journal:
//!
//! ```text
//! mark      slot | slot, each at a sector of its own
//! slot      "hol:mark" | count 8 | segment 8 | sequence 8 | checksum of the last frame 4 | is exact 1 | 0 3 | crc32c 4
//! ```
//!
//! The slots are written in turn, so one is complete even if the machine stops while the other is written.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::current_entries::SegmentEnd;
use crate::frame::FramePosition;
use crate::segment::{self, sync_directory};
use crate::{Durability, JournalError};

const MARK_FILE: &str = "mark";
const MAGIC: [u8; 8] = *b"hol:mark";
/// Length of a sector in octets; a disk writes a sector completely or not at all.
const SECTOR_OCTETS: usize = 512;
const SLOT_OCTETS: usize = 44;

/// A position in the journal up to which everything was on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The number of the last segment.
    pub segment: u64,
    /// The position of the next frame in the segment.
    pub frame_position: FramePosition,
    /// Whether all acknowledged batches are before this position.
    pub is_exact: bool,
}

/// The file of the high-water mark of an open journal.
#[derive(Debug)]
pub(crate) struct HighWaterMark {
    file: File,
    path: PathBuf,
    count: u64,
    position: Position,
    is_synced: bool,
}

impl HighWaterMark {
    /// Opens the mark's file, or creates it, and sets it to a position that is on the disk.
    pub fn open(dir: &Path, position: Position) -> Result<Self, JournalError> {
        let path = path(dir);
        let count = read_slots(dir)?.map_or(0, |(count, _)| count);
        if count == 0 {
            create(dir, position).map_err(JournalError::io("create", &path))?;
        }
        let file = File::options().write(true).open(&path).map_err(JournalError::io("open", &path))?;
        let mut mark = Self { file, path, count, position, is_synced: true };
        mark.write(position)?;
        mark.sync()?;
        Ok(mark)
    }

    /// Moves the mark. On return the kernel has it, so it survives any end of the process.
    pub fn advance(&mut self, position: Position) -> Result<(), JournalError> {
        if self.position == position { Ok(()) } else { self.write(position) }
    }

    fn write(&mut self, position: Position) -> Result<(), JournalError> {
        self.is_synced = false;
        self.count += 1;
        let at = if self.count.is_multiple_of(2) { 0 } else { SECTOR_OCTETS };
        let written = self.file.write_all_at(&slot(self.count, position), at as u64);
        written.map_err(JournalError::io("write", &self.path))?;
        self.position = position;
        Ok(())
    }

    /// Returns true if the mark is on the disk, so that it survives a crash of the machine.
    pub fn is_synced(&self) -> bool {
        self.is_synced
    }

    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(JournalError::io("sync", &self.path))?;
        self.is_synced = true;
        Ok(())
    }
}

impl Position {
    pub fn new(segment: u64, frame_position: FramePosition, durability: Durability) -> Self {
        Self { segment, frame_position, is_exact: durability == Durability::Synced }
    }

    /// Returns an error if the journal ends before this position. `end` is the number of the last segment and the end
    /// of its complete frames; `has_tail` says whether anything follows these frames.
    pub fn check(
        &self,
        dir: &Path,
        end: Option<(u64, &SegmentEnd)>,
        has_tail: bool,
    ) -> Result<(), JournalError> {
        let missing = |segment, offset, problem| {
            Err(JournalError::Missing { path: segment::path(dir, segment), offset, problem, mark: path(dir) })
        };
        match end {
            Some((last, _)) if last > self.segment => Ok(()),
            Some((last, end)) if last == self.segment => {
                let (found, expected) = (end.frame_position.sequence(), self.frame_position.sequence());
                if found < expected && has_tail {
                    missing(last, end.offset, "an acknowledged record is incomplete or overwritten")
                } else if found < expected {
                    missing(last, end.offset, "the file ends here, but more records had been acknowledged")
                } else if found == expected && end.frame_position != self.frame_position {
                    missing(last, end.offset, "the last record differs from the one that was acknowledged")
                } else {
                    Ok(())
                }
            }
            _ => missing(self.segment, 0, "this segment, in which records were acknowledged, is missing"),
        }
    }
}

/// Returns the position of the mark; `None` if there is no mark, as in journals of earlier versions.
pub(crate) fn read(dir: &Path) -> Result<Option<Position>, JournalError> {
    Ok(read_slots(dir)?.map(|(_, position)| position))
}

fn path(dir: &Path) -> PathBuf {
    dir.join(MARK_FILE)
}

fn read_slots(dir: &Path) -> Result<Option<(u64, Position)>, JournalError> {
    let path = path(dir);
    let mut octets = Vec::new();
    match File::open(&path).and_then(|file| file.take(2 * SECTOR_OCTETS as u64).read_to_end(&mut octets)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(JournalError::io("read", &path))?,
    };
    let slots = [0, SECTOR_OCTETS].into_iter().filter_map(|at| parse(octets.get(at..at + SLOT_OCTETS)?));
    let damaged = JournalError::Missing {
        path: path.clone(),
        offset: 0,
        problem: "neither copy of the mark is complete, so acknowledged records may be missing",
        mark: path,
    };
    slots.max_by_key(|(count, _)| *count).ok_or(damaged).map(Some)
}

/// Creates the file with its final length, so that the mark can be moved even if the disk is full later.
fn create(dir: &Path, position: Position) -> io::Result<()> {
    let unfinished = dir.join(format!("{MARK_FILE}.new"));
    let write = || {
        let options = File::options().write(true).create(true).truncate(true).mode(0o600).clone();
        let file = options.open(&unfinished)?;
        let mut octets = [0; 2 * SECTOR_OCTETS];
        octets[..SLOT_OCTETS].copy_from_slice(&slot(0, position));
        file.write_all_at(&octets, 0)?;
        file.sync_all()
    };
    write().inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    fs::rename(&unfinished, path(dir))?;
    sync_directory(dir).map_err(io::Error::other)
}

fn slot(count: u64, position: Position) -> [u8; SLOT_OCTETS] {
    let mut octets = [0; SLOT_OCTETS];
    octets[..8].copy_from_slice(&MAGIC);
    octets[8..16].copy_from_slice(&count.to_be_bytes());
    octets[16..24].copy_from_slice(&position.segment.to_be_bytes());
    octets[24..36].copy_from_slice(&position.frame_position.to_octets());
    octets[36] = u8::from(position.is_exact);
    let checksum = crc32c::crc32c(&octets[..SLOT_OCTETS - 4]);
    octets[SLOT_OCTETS - 4..].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// Parses the count and the position in a slot of the file; `None` if the slot is incomplete.
fn parse(octets: &[u8]) -> Option<(u64, Position)> {
    let number = |at: usize| Some(u64::from_be_bytes(octets.get(at..at + 8)?.try_into().ok()?));
    let frame_position = FramePosition::from_octets(octets.get(24..36)?.try_into().ok()?);
    let position = Position { segment: number(16)?, frame_position, is_exact: octets.get(36)? == &1 };
    let count = number(8)?;
    (slot(count, position) == octets).then_some((count, position))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(segment: u64) -> Position {
        Position::new(segment, FramePosition::first_of_segment(segment), Durability::Synced)
    }

    #[test]
    fn every_flipped_bit_of_a_slot_is_detected() {
        let good = slot(7, position(3));
        assert_eq!(parse(&good), Some((7, position(3))));
        for bit in 0..SLOT_OCTETS * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&bad), None, "bit {bit}");
        }
    }

    /// The machine may stop while one of the slots is being written.
    #[test]
    fn an_incomplete_slot_leaves_the_previous_mark() {
        let dir = tempfile::tempdir().unwrap();
        let mut mark = HighWaterMark::open(dir.path(), position(1)).unwrap();
        for segment in 2..6 {
            mark.advance(position(segment)).unwrap();
            assert_eq!(read(dir.path()).unwrap(), Some(position(segment)));
            let whole = fs::read(path(dir.path())).unwrap();
            let mut truncated_tail = whole.clone();
            let at = if mark.count.is_multiple_of(2) { 0 } else { SECTOR_OCTETS };
            truncated_tail[at + 20] ^= 0xFF;
            fs::write(path(dir.path()), &truncated_tail).unwrap();
            assert_eq!(read(dir.path()).unwrap(), Some(position(segment - 1)));
            fs::write(path(dir.path()), &whole).unwrap();
        }
        fs::write(path(dir.path()), [0; 2 * SECTOR_OCTETS]).unwrap();
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("neither copy of the mark is complete"), "{error}");
    }
}
