//! Streams to test with.

use crate::{Adus, Stream};

/// Returns the first frames of a stream.
pub(crate) fn frames(kbps: u16, count: usize) -> Vec<Vec<u8>> {
    Stream::new(kbps).expect("a bit rate").take(count).collect()
}

/// Their ADU frames.
pub(crate) fn adus(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut adus = Adus::default();
    frames.iter().map(|frame| adus.next(frame).expect("a frame").expect("from the beginning")).collect()
}
