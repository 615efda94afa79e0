//! File contents that only a server that stored them can return.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use hol_base::{Digest, Digester, Seed};

/// Returns a range of the pseudo-random content with the number `content`.
pub(super) fn content_octets(content: u32, range: Range<u32>) -> Bytes {
    const WORD_OCTETS: u32 = u64::BITS / 8;
    let words = range.start / WORD_OCTETS..range.end.div_ceil(WORD_OCTETS);
    let mut octets = BytesMut::zeroed(words.len() * WORD_OCTETS as usize);
    for (word, place) in words.clone().zip(octets.as_chunks_mut().0) {
        let Seed(random) = Seed(content.into()).derive_for_index(word.into());
        *place = random.to_le_bytes();
    }
    let before = (range.start - words.start * WORD_OCTETS) as usize;
    octets.freeze().slice(before..before + range.len())
}

/// Returns the digest of the first `size` octets of a content, without storing all of them in memory.
pub(super) fn digest(content: u32, size: u32) -> Digest {
    // A multiple of the eight octets that a digest takes at once.
    const PIECE_OCTETS: u32 = 1 << 16;
    let mut digester = Digester::new();
    for start in (0..size).step_by(PIECE_OCTETS as usize) {
        digester.add_octets(&content_octets(content, start..size.min(start + PIECE_OCTETS)));
    }
    digester.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn contents_with_different_numbers_differ() {
        let all: Vec<Bytes> = (0..100).map(|content| content_octets(content, 0..16)).collect();
        assert!((0..100).all(|one| (0..one).all(|other| all[one] != all[other])));
    }

    proptest! {
        #[test]
        fn file_content_does_not_depend_on_the_block_size(from in 0_u32..70_000, length in 0_u32..70_000) {
            let whole = content_octets(7, 0..140_000);
            let (start, end) = (from as usize, (from + length) as usize);
            prop_assert_eq!(content_octets(7, from..from + length), whole.slice(start..end));
            let mut digester = Digester::new();
            digester.add_octets(&whole[..end]);
            prop_assert_eq!(digest(7, from + length), digester.finish());
        }
    }
}
