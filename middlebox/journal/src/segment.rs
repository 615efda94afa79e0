//! Segments: the files of a journal, numbered in the order of creation.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::JournalError;
use crate::frame::{Format, FramePosition, FrameReader};

/// Length of a segment's header, which precedes the first frame, in octets.
pub(crate) const HEADER_LENGTH: usize = 16;
/// The version of the segment format.
pub(crate) const VERSION: u8 = 2;
/// The previous version of the segment format, which can still be read.
const UNCHAINED_VERSION: u8 = 1;

const MAGIC: [u8; 8] = *b"hol:rule";
const FILE_PREFIX: &str = "journal.";
/// Suffix of a segment's file name until the segment is on the disk.
const UNFINISHED_SUFFIX: &str = ".new";

/// The rules that are current at the start of a segment, before its first frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentStart {
    /// No rules: earlier segments are not needed.
    Empty,
    /// The rules that are current at the end of the previous segment.
    Continued,
}

pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{FILE_PREFIX}{number:010}"))
}

/// The segment files of a directory.
#[derive(Debug, Default)]
pub(crate) struct SegmentList {
    /// Numbers of the segments, in ascending order.
    pub numbers: Vec<u64>,
    /// Segment files that were not yet on the disk when writing stopped.
    pub unfinished: Vec<PathBuf>,
}

pub(crate) fn list(dir: &Path) -> Result<SegmentList, JournalError> {
    let mut listed = SegmentList::default();
    for file in fs::read_dir(dir).map_err(JournalError::io("read", dir))? {
        let file = file.map_err(JournalError::io("read", dir))?;
        let name = file.file_name();
        let Some(number) = name.to_str().and_then(|name| name.strip_prefix(FILE_PREFIX)) else { continue };
        if let Some(number) = number.strip_suffix(UNFINISHED_SUFFIX)
            && number.parse::<u64>().is_ok()
        {
            listed.unfinished.push(file.path());
        } else if let Ok(number) = number.parse() {
            listed.numbers.push(number);
        }
    }
    listed.numbers.sort_unstable();
    Ok(listed)
}

pub(crate) fn remove(path: &Path) -> Result<(), JournalError> {
    fs::remove_file(path).map_err(JournalError::io("remove", path))
}

/// Creates the segment with this number, or replaces it. The file gets its name only when everything that `fill` writes
/// is on the disk, so a segment always has a complete header. Returns the file.
pub(crate) fn create(
    dir: &Path,
    number: u64,
    start: SegmentStart,
    fill: impl FnOnce(&mut File) -> Result<(), JournalError>,
) -> Result<File, JournalError> {
    let path = path(dir, number);
    let unfinished = dir.join(format!("{FILE_PREFIX}{number:010}{UNFINISHED_SUFFIX}"));
    let file = create_unfinished(&unfinished, start, fill).inspect_err(|_| {
        // The partial file may occupy space that others need. Opening the journal removes it, too.
        let _ = fs::remove_file(&unfinished);
    })?;
    fs::rename(&unfinished, &path).map_err(JournalError::io("create", &path))?;
    sync_directory(dir)?;
    Ok(file)
}

fn create_unfinished(
    path: &Path,
    start: SegmentStart,
    fill: impl FnOnce(&mut File) -> Result<(), JournalError>,
) -> Result<File, JournalError> {
    let options = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
    let mut file = options.open(path).map_err(JournalError::io("create", path))?;
    file.write_all(&header(start, VERSION)).map_err(JournalError::io("write", path))?;
    fill(&mut file)?;
    file.sync_all().map_err(JournalError::io("sync", path))?;
    Ok(file)
}

/// Syncs the directory, because only then the names of new files are on the disk.
pub(crate) fn sync_directory(dir: &Path) -> Result<(), JournalError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(JournalError::io("sync", dir))
}

/// A reader of the frames in an open segment.
pub(crate) type SegmentReader = FrameReader<BufReader<File>>;

/// Opens a segment for reading.
pub(crate) fn read(path: &Path, number: u64) -> Result<(SegmentStart, SegmentReader), JournalError> {
    let mut file = File::open(path).map_err(JournalError::io("open", path))?;
    let length = file.metadata().map_err(JournalError::io("read", path))?.len();
    let mut octets = [0; HEADER_LENGTH];
    let damaged = |problem| JournalError::Damaged { path: path.to_owned(), offset: 0, problem };
    file.read_exact(&mut octets).map_err(|_| damaged("the file ends within its header"))?;
    let (start, format) = parse_header(octets).map_err(|error| match error {
        HeaderError::Version(version) => JournalError::Version { path: path.to_owned(), version },
        HeaderError::Malformed => damaged("the file does not begin with the header of a journal"),
    })?;
    let reader = BufReader::with_capacity(1 << 16, file);
    Ok((
        start,
        FrameReader::new(
            reader,
            HEADER_LENGTH as u64,
            length,
            format,
            FramePosition::first_of_segment(number),
        ),
    ))
}

fn header(start: SegmentStart, version: u8) -> [u8; HEADER_LENGTH] {
    let mut octets = [0; HEADER_LENGTH];
    octets[..8].copy_from_slice(&MAGIC);
    octets[8] = version;
    octets[9] = match start {
        SegmentStart::Empty => 0,
        SegmentStart::Continued => 1,
    };
    let checksum = crc32c::crc32c(&octets[..12]);
    octets[12..].copy_from_slice(&checksum.to_be_bytes());
    octets
}

/// Why the header of a segment is invalid.
#[derive(Debug, PartialEq, Eq)]
enum HeaderError {
    Malformed,
    Version(u8),
}

fn parse_header(octets: [u8; HEADER_LENGTH]) -> Result<(SegmentStart, Format), HeaderError> {
    // Other versions may have other checksums, but all state their version at this position.
    let format = match octets[8] {
        UNCHAINED_VERSION => Format::Unchained,
        VERSION => Format::Chained,
        version if octets.starts_with(&MAGIC) => return Err(HeaderError::Version(version)),
        _ => return Err(HeaderError::Malformed),
    };
    let starts = [SegmentStart::Empty, SegmentStart::Continued];
    let start = starts.into_iter().find(|start| header(*start, octets[8]) == octets);
    start.map(|start| (start, format)).ok_or(HeaderError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_states_its_version_and_detects_changed_octets() {
        for start in [SegmentStart::Empty, SegmentStart::Continued] {
            assert_eq!(parse_header(header(start, UNCHAINED_VERSION)), Ok((start, Format::Unchained)));
            let good = header(start, VERSION);
            assert_eq!(parse_header(good), Ok((start, Format::Chained)));
            for octet in 0..HEADER_LENGTH {
                let mut bad = good;
                bad[octet] ^= 4;
                let expected = if octet == 8 { HeaderError::Version(6) } else { HeaderError::Malformed };
                assert_eq!(parse_header(bad), Err(expected), "octet {octet}");
            }
        }
    }
}
