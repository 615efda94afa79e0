//! Frames: each has the entries of one batch, their length, a checksum, and the position of the frame in its
//! segment.
//!
//! ```text
//! mark 4 | checksum 4 | length 4 | sequence 8 | checksum of the previous frame 4 | entries
//! ```
//!
//! The numbers are lengths in octets.
//!
//! Each frame is self-contained, so that frames after damage are found. Its position makes it possible to detect
//! frames that were removed, repeated or exchanged.

use std::io::{self, Read};

use crate::single_bit_error::is_single_bit_error;

/// The octets at the start of each frame, by which frames after damage can be found. UTF-8 names cannot contain 0xF5.
const FRAME_MAGIC: [u8; 4] = *b"\xF5hol";
/// Offset of the length in a frame's header, from which on the checksum covers the frame.
const LENGTH_OFFSET: usize = 8;
/// Length of a frame's header, in octets.
const HEADER_LENGTH: usize = Format::Chained.header_length();

/// The format of the frames in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The format of earlier versions, whose frames do not contain their position.
    Unchained,
    Chained,
}

impl Format {
    const fn header_length(self) -> usize {
        match self {
            Self::Unchained => 12,
            Self::Chained => 24,
        }
    }
}

/// The position of a frame in its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FramePosition {
    /// Number of the frame in its segment, from 1.
    sequence: u64,
    /// The checksum of the previous frame; for the first frame of a segment, the checksum of the segment's number.
    previous_checksum: u32,
}

impl FramePosition {
    /// Returns the position of the first frame of a segment.
    pub fn first_of_segment(segment: u64) -> Self {
        Self { sequence: 1, previous_checksum: crc32c::crc32c(&segment.to_be_bytes()) }
    }

    fn following(self, checksum: u32) -> Self {
        Self { sequence: self.sequence + 1, previous_checksum: checksum }
    }

    /// Returns the number of the frame in its segment.
    pub fn sequence(self) -> u64 {
        self.sequence
    }

    pub fn to_octets(self) -> [u8; 12] {
        let mut octets = [0; 12];
        octets[..8].copy_from_slice(&self.sequence.to_be_bytes());
        octets[8..].copy_from_slice(&self.previous_checksum.to_be_bytes());
        octets
    }

    pub fn from_octets(octets: [u8; 12]) -> Self {
        let (sequence, before) = octets.split_at(8);
        Self {
            sequence: u64::from_be_bytes(sequence.try_into().expect("the slice has eight octets")),
            previous_checksum: u32::from_be_bytes(before.try_into().expect("the slice has four octets")),
        }
    }
}

/// Makes `out` a frame without entries. After entries have been appended, [`seal`] completes it.
pub(crate) fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[0; HEADER_LENGTH]);
}

/// Returns true if the frame has no entries.
pub(crate) fn is_empty(frame: &[u8]) -> bool {
    frame.len() <= HEADER_LENGTH
}

/// Returns the entries of a frame.
pub(crate) fn entries(frame: &[u8]) -> &[u8] {
    frame.get(HEADER_LENGTH..).unwrap_or_default()
}

/// Completes the header of a frame at this position; returns the position of the next frame.
pub(crate) fn seal(frame: &mut [u8], frame_position: FramePosition) -> FramePosition {
    let length = u32::try_from(frame.len() - HEADER_LENGTH).expect("no batch has 4 GiB of changes");
    frame[LENGTH_OFFSET..LENGTH_OFFSET + 4].copy_from_slice(&length.to_be_bytes());
    frame[LENGTH_OFFSET + 4..HEADER_LENGTH].copy_from_slice(&frame_position.to_octets());
    let checksum = crc32c::crc32c(&frame[LENGTH_OFFSET..]);
    frame[4..LENGTH_OFFSET].copy_from_slice(&checksum.to_be_bytes());
    frame[..4].copy_from_slice(&FRAME_MAGIC);
    frame_position.following(checksum)
}

/// Returns the last frame of a complete segment. It has no entries; its absence shows that the end of the segment is
/// missing.
pub(crate) fn closing_frame(frame_position: FramePosition) -> Vec<u8> {
    let mut frame = Vec::new();
    begin(&mut frame);
    seal(&mut frame, frame_position);
    frame
}

/// Parses the checksum and the length in a frame's header.
fn parse_header(octets: &[u8]) -> Option<(u32, u32)> {
    let number = |at| {
        octets
            .get(at..at + 4)
            .map(|octets| u32::from_be_bytes(octets.try_into().expect("the slice has four octets")))
    };
    let numbers = number(4).zip(number(LENGTH_OFFSET));
    numbers.filter(|_| octets.starts_with(&FRAME_MAGIC))
}

/// What a segment contains next.
pub(crate) enum SegmentItem<'a> {
    /// A complete frame: its offset and its entries.
    Frame(u64, &'a [u8]),
    /// A complete frame at this offset that does not belong there, because its position does not follow that of the
    /// previous frame.
    OutOfSequence(u64),
    /// The end of the segment.
    End,
    /// An incomplete frame at the end of the segment.
    Incomplete,
}

/// A reader that returns the frames of a segment one at a time.
pub(crate) struct FrameReader<R> {
    source: R,
    format: Format,
    /// Offset of the next frame, in octets.
    offset: u64,
    /// Length of the segment in octets.
    end: u64,
    frame_position: FramePosition,
    is_closed: bool,
    octets: Vec<u8>,
}

impl<R: Read> FrameReader<R> {
    /// Creates a reader of a segment of `end` octets. `source` continues at `offset`, where a frame starts.
    pub fn new(source: R, offset: u64, end: u64, format: Format, frame_position: FramePosition) -> Self {
        Self { source, format, offset, end, frame_position, is_closed: false, octets: Vec::new() }
    }

    /// Returns the offset at which the last complete frame ends.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the position of the next frame.
    pub fn frame_position(&self) -> FramePosition {
        self.frame_position
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns true if the segment ends after the last complete frame.
    pub fn is_at_end(&self) -> bool {
        self.offset == self.end
    }

    /// Returns true if the last frame marks the segment as complete. The format of earlier versions has no such frames,
    /// so the result is always true for it.
    pub fn is_closed(&self) -> bool {
        self.is_closed || self.format == Format::Unchained
    }

    /// Returns the next item of the segment. After [`SegmentItem::Incomplete`] nothing follows.
    pub fn next(&mut self) -> io::Result<SegmentItem<'_>> {
        let (left, header) = (self.end - self.offset, self.format.header_length());
        if left == 0 {
            return Ok(SegmentItem::End);
        }
        if left < header as u64 {
            return Ok(SegmentItem::Incomplete);
        }
        self.octets.resize(header, 0);
        self.source.read_exact(&mut self.octets)?;
        // A length is used only if it fits into the file.
        let promised =
            parse_header(&self.octets).filter(|(_, length)| u64::from(*length) <= left - header as u64);
        let Some((expected, length)) = promised else { return Ok(SegmentItem::Incomplete) };
        self.octets.resize(header + length as usize, 0);
        self.source.read_exact(&mut self.octets[header..])?;
        if crc32c::crc32c(&self.octets[LENGTH_OFFSET..]) != expected {
            return Ok(SegmentItem::Incomplete);
        }
        let begin = self.offset;
        if self.format == Format::Chained
            && self.octets[LENGTH_OFFSET + 4..header] != self.frame_position.to_octets()
        {
            return Ok(SegmentItem::OutOfSequence(begin));
        }
        self.offset += self.octets.len() as u64;
        self.frame_position = self.frame_position.following(expected);
        self.is_closed = length == 0;
        Ok(SegmentItem::Frame(begin, &self.octets[header..]))
    }
}

/// Returns true if a complete frame starts anywhere in these octets.
pub(crate) fn contains_frame(octets: &[u8], format: Format) -> bool {
    let marks = octets.windows(FRAME_MAGIC.len()).enumerate().filter(|(_, window)| *window == FRAME_MAGIC);
    marks.map(|(at, _)| &octets[at..]).any(|frame| {
        let Some((expected, length)) = parse_header(frame) else { return false };
        let end = format.header_length() + length as usize;
        frame.get(LENGTH_OFFSET..end).is_some_and(|checked| crc32c::crc32c(checked) == expected)
    })
}

/// Returns true if these octets at the end of a segment are a whole frame with one changed bit, not a partly written
/// frame.
pub(crate) fn is_one_bit_off(octets: &[u8], format: Format) -> bool {
    let Some((header, entries)) = octets.split_at_checked(format.header_length()) else { return false };
    let length = u32::from_be_bytes(
        header[LENGTH_OFFSET..LENGTH_OFFSET + 4].try_into().expect("the slice has four octets"),
    );
    let is_at_end = |length: u32| length as usize == entries.len();
    let checksum =
        u32::from_be_bytes(header[4..LENGTH_OFFSET].try_into().expect("the slice has four octets"));
    let found = crc32c::crc32c(&octets[LENGTH_OFFSET..]);
    let bits_off =
        |one: &[u8], other: &[u8]| -> u32 { one.iter().zip(other).map(|(a, b)| (a ^ b).count_ones()).sum() };
    let mark_off = bits_off(&header[..4], &FRAME_MAGIC);
    // A changed bit in the length also changes the checksummed part; the frame then ends in the wrong place.
    let length_off = (length ^ entries.len() as u32).count_ones();
    match (mark_off, length_off) {
        (1, 0) => found == checksum,
        (0, 0) if is_at_end(length) => {
            (found ^ checksum).count_ones() == 1
                || is_single_bit_error(found ^ checksum, octets.len() - LENGTH_OFFSET)
        }
        (0, 1) => {
            let mut right = octets[LENGTH_OFFSET..].to_vec();
            right[..4].copy_from_slice(&(entries.len() as u32).to_be_bytes());
            crc32c::crc32c(&right) == checksum
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: FramePosition = FramePosition { sequence: 1, previous_checksum: 7 };

    fn frame(entries: &[u8]) -> Vec<u8> {
        frame_at(FIRST, entries).0
    }

    fn frame_at(frame_position: FramePosition, entries: &[u8]) -> (Vec<u8>, FramePosition) {
        let mut out = Vec::new();
        begin(&mut out);
        out.extend_from_slice(entries);
        let next = seal(&mut out, frame_position);
        (out, next)
    }

    /// Returns the number of complete frames, the offset at which they end, and whether anything follows them.
    fn read(octets: &[u8]) -> (usize, u64, bool) {
        let mut frames = FrameReader::new(octets, 0, octets.len() as u64, Format::Chained, FIRST);
        for count in 0.. {
            match frames.next().unwrap() {
                SegmentItem::Frame(..) => {}
                SegmentItem::End => return (count, frames.offset(), false),
                SegmentItem::Incomplete | SegmentItem::OutOfSequence(_) => {
                    return (count, frames.offset(), true);
                }
            }
        }
        unreachable!()
    }

    #[test]
    fn a_cut_frame_is_incomplete_and_earlier_ones_are_complete() {
        let (first, next) = frame_at(FIRST, b"one");
        let second = frame_at(next, b"another").0;
        let both = [&first[..], &second].concat();
        assert_eq!(read(&both), (2, both.len() as u64, false));
        assert_eq!(read(&first), (1, first.len() as u64, false));
        for cut in first.len() + 1..both.len() {
            assert_eq!(read(&both[..cut]), (1, first.len() as u64, true));
        }
    }

    #[test]
    fn every_flipped_bit_of_a_frame_is_detected() {
        let good = frame(b"an entry");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&bad), (0, 0, true), "bit {bit}");
            assert!(is_one_bit_off(&bad, Format::Chained), "bit {bit}");
            bad[(bit / 8 + 5) % good.len()] ^= 3;
            assert!(!is_one_bit_off(&bad, Format::Chained), "more than bit {bit}");
        }
    }

    #[test]
    fn a_frame_is_found_after_other_octets() {
        let (mut damaged, whole) = (frame(b"damaged"), frame(b"whole"));
        damaged[HEADER_LENGTH] ^= 1;
        assert!(!contains_frame(&damaged, Format::Chained));
        assert!(contains_frame(&[&damaged[..], &whole].concat(), Format::Chained));
        assert!(!contains_frame(&[&damaged[..], &whole[..whole.len() - 1]].concat(), Format::Chained));
        assert!(!contains_frame(&[0; 100], Format::Chained));
    }

    #[test]
    fn removed_repeated_or_exchanged_frames_are_out_of_sequence() {
        let mut frame_position = FIRST;
        let frames = [b"one", b"two", b"six", b"ten"].map(|entries| {
            let (octets, next) = frame_at(frame_position, entries);
            frame_position = next;
            octets
        });
        let [a, b, c, d] = [0, 1, 2, 3].map(|n: usize| &frames[n][..]);
        assert_eq!(read(&[a, b, c, d].concat()).0, 4);
        for (wrong, whole) in [
            ([a, c, d].concat(), 1),
            ([b, c, d].concat(), 0),
            ([a, a, b, c].concat(), 1),
            ([a, b, b, c].concat(), 2),
            ([a, c, b, d].concat(), 1),
        ] {
            let (count, _, is_wrong) = read(&wrong);
            assert_eq!((count, is_wrong), (whole, true));
        }
    }

    #[test]
    fn a_partly_written_frame_is_not_a_single_bit_error() {
        let whole = frame(&[0xA5; 4000]);
        for end in (1..whole.len()).step_by(7) {
            assert!(!is_one_bit_off(&whole[..end], Format::Chained), "{end}");
            let mut unwritten = whole.clone();
            unwritten[end..].fill(0);
            assert!(!is_one_bit_off(&unwritten, Format::Chained), "{end}");
        }
    }
}
