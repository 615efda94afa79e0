//! Frames: the entries of one batch with a length and a checksum.

use std::io::{self, Read};

/// Octets before the entries: mark, checksum, length.
const HEADER: usize = 12;
/// Begins each frame, so that frames behind damage can be found. 0xF5 is in no name.
const MARK: [u8; 4] = *b"\xF5hol";

/// Makes `out` a frame without entries; append them, then [`seal`] it.
pub(crate) fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[0; HEADER]);
}

/// True if there are no entries in it.
pub(crate) fn is_empty(frame: &[u8]) -> bool {
    frame.len() <= HEADER
}

/// Completes a frame.
pub(crate) fn seal(frame: &mut [u8]) {
    let length = u32::try_from(frame.len() - HEADER).expect("no batch has 4 GiB of changes");
    frame[8..HEADER].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32c::crc32c(&frame[8..]);
    frame[4..8].copy_from_slice(&checksum.to_be_bytes());
    frame[..4].copy_from_slice(&MARK);
}

/// Mark, checksum and length.
fn parse_header(header: [u8; HEADER]) -> Option<(u32, u32)> {
    let [m0, m1, m2, m3, c0, c1, c2, c3, l0, l1, l2, l3] = header;
    let numbers = (u32::from_be_bytes([c0, c1, c2, c3]), u32::from_be_bytes([l0, l1, l2, l3]));
    ([m0, m1, m2, m3] == MARK).then_some(numbers)
}

fn checksum(entries: &[u8]) -> u32 {
    let length = entries.len() as u32;
    crc32c::crc32c_append(crc32c::crc32c(&length.to_be_bytes()), entries)
}

/// What comes next in a segment.
pub(crate) enum Next<'a> {
    /// The entries of a whole frame, which begins there.
    Frame(u64, &'a [u8]),
    /// Nothing more.
    End,
    /// Octets that are no whole frame.
    Broken,
}

/// Reads the frames of a segment, one at a time.
pub(crate) struct Frames<R> {
    source: R,
    /// Where the next frame begins, and where the segment ends.
    offset: u64,
    end: u64,
    entries: Vec<u8>,
}

impl<R: Read> Frames<R> {
    /// The frames of a source that stands at `offset` of `end` octets.
    pub fn new(source: R, offset: u64, end: u64) -> Self {
        Self { source, offset, end, entries: Vec::new() }
    }

    /// Octets up to the end of the last whole frame.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// True if nothing lies behind the last whole frame.
    pub fn are_at_end(&self) -> bool {
        self.offset == self.end
    }

    /// The next frame. Behind [`Next::Broken`] there is none to be had.
    pub fn next(&mut self) -> io::Result<Next<'_>> {
        let left = self.end - self.offset;
        if left == 0 {
            return Ok(Next::End);
        }
        let mut header = [0; HEADER];
        if left < HEADER as u64 {
            return Ok(Next::Broken);
        }
        self.source.read_exact(&mut header)?;
        // A length is not believed before it fits into the file.
        let Some((expected, length)) =
            parse_header(header).filter(|(_, length)| u64::from(*length) <= left - HEADER as u64)
        else {
            return Ok(Next::Broken);
        };
        self.entries.resize(length as usize, 0);
        self.source.read_exact(&mut self.entries)?;
        if checksum(&self.entries) != expected {
            return Ok(Next::Broken);
        }
        let begin = self.offset;
        self.offset += HEADER as u64 + u64::from(length);
        Ok(Next::Frame(begin, &self.entries))
    }
}

/// True if there is a whole frame anywhere in these octets.
pub(crate) fn any_in(octets: &[u8]) -> bool {
    let marks = octets.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    marks.map(|(at, _)| &octets[at..]).any(|frame| {
        let Some((header, rest)) = frame.split_first_chunk::<HEADER>() else { return false };
        let Some((expected, length)) = parse_header(*header) else { return false };
        rest.get(..length as usize).is_some_and(|entries| checksum(entries) == expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(entries: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        begin(&mut out);
        out.extend_from_slice(entries);
        seal(&mut out);
        out
    }

    /// How many frames are whole, up to which octet, and whether the rest is none.
    fn read(octets: &[u8]) -> (usize, u64, bool) {
        let mut frames = Frames::new(octets, 0, octets.len() as u64);
        for count in 0.. {
            match frames.next().unwrap() {
                Next::Frame(..) => {}
                Next::End => return (count, frames.offset(), false),
                Next::Broken => return (count, frames.offset(), true),
            }
        }
        unreachable!()
    }

    #[test]
    fn a_frame_that_is_cut_anywhere_is_broken_and_those_before_it_are_whole() {
        let (first, second) = (frame(b"one"), frame(b"another"));
        let both = [&first[..], &second].concat();
        assert_eq!(read(&both), (2, both.len() as u64, false));
        assert_eq!(read(&first), (1, first.len() as u64, false));
        for cut in first.len() + 1..both.len() {
            assert_eq!(read(&both[..cut]), (1, first.len() as u64, true));
        }
    }

    #[test]
    fn every_bit_of_a_frame_counts() {
        let good = frame(b"an entry");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&bad), (0, 0, true), "bit {bit}");
        }
    }

    #[test]
    fn a_frame_is_found_behind_octets_that_are_none() {
        let (mut damaged, whole) = (frame(b"damaged"), frame(b"whole"));
        damaged[HEADER] ^= 1;
        assert!(!any_in(&damaged));
        assert!(any_in(&[&damaged[..], &whole].concat()));
        assert!(!any_in(&[&damaged[..], &whole[..whole.len() - 1]].concat()));
        assert!(!any_in(&[0; 100]));
    }
}
