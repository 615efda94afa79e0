//! Streams for tests.

use crate::{AduConverter, Stream};

/// Returns the first `count` frames of a test stream of `kbps` kbit/s.
pub(crate) fn frames(kbps: u16, count: usize) -> Vec<Vec<u8>> {
    Stream::new(kbps).expect("a bit rate").take(count).collect()
}

/// Returns the ADU frames of `frames`.
pub(crate) fn adus(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut adus = AduConverter::default();
    frames.iter().map(|frame| adus.next(frame).expect("a frame").expect("from the beginning")).collect()
}
