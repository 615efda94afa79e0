//! Data that the application has written and TCP has not sent.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Zeros that all long writes share, instead of storing their own.
static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
/// Number of octets at the start of a long write that are always stored, because they identify the message.
const HEAD_OCTETS: usize = 16;
/// Minimum length in octets of a long write. Shorter writes are stored as they are.
const LONG_WRITE: usize = 1024;

/// A queue of octets that returns whole writes without copying them.
///
/// A greedy sender keeps the queue full, with megabytes for each connection. Its messages consist of a few octets, then
/// zeros, so all messages share one block of zeros.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    writes: VecDeque<Bytes>,
    length: usize,
}

impl SendBuffer {
    /// Returns the number of queued octets.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Returns whether the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends the octets of a write.
    pub(crate) fn push(&mut self, octets: Bytes) {
        self.length += octets.len();
        if octets.len() >= LONG_WRITE
            && octets[HEAD_OCTETS..].chunks(ZEROS.len()).all(|tail| tail == &ZEROS[..tail.len()])
        {
            self.writes.push_back(Bytes::copy_from_slice(&octets[..HEAD_OCTETS]));
            let shared = |tail: &[u8]| Bytes::from_static(&ZEROS[..tail.len()]);
            self.writes.extend(octets[HEAD_OCTETS..].chunks(ZEROS.len()).map(shared));
        } else {
            self.writes.push_back(octets);
        }
    }

    /// Removes exactly `size` octets from the front.
    pub(crate) fn take(&mut self, size: usize) -> Bytes {
        assert!(size <= self.length, "{size} octets requested, but only {} queued", self.length);
        self.length -= size;
        match self.writes.front_mut() {
            Some(first) if first.len() > size => first.split_to(size),
            Some(first) if first.len() == size => self.writes.pop_front().unwrap_or_default(),
            _ => self.gather(size),
        }
    }

    fn gather(&mut self, size: usize) -> Bytes {
        let mut octets = BytesMut::with_capacity(size);
        while octets.len() < size {
            let missing = size - octets.len();
            let first = self.writes.front_mut().expect("the length is the sum of the queued writes");
            if first.len() > missing {
                octets.extend_from_slice(&first.split_to(missing));
            } else {
                octets.extend_from_slice(first);
                self.writes.pop_front();
            }
        }
        octets.freeze()
    }

    /// Discards all octets.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_of_any_size_return_the_stream() {
        for size in 1..=9 {
            let mut buffer = SendBuffer::default();
            for write in [&b"abc"[..], b"d", b"efgh", b"i"] {
                buffer.push(Bytes::copy_from_slice(write));
            }
            let mut stream = Vec::new();
            while !buffer.is_empty() {
                let next = size.min(buffer.length());
                stream.extend_from_slice(&buffer.take(next));
            }
            assert_eq!(stream, b"abcdefghi", "cuts of {size}");
        }
    }

    #[test]
    fn shared_zeros_do_not_change_the_stream() {
        let mut stream = Vec::new();
        let mut buffer = SendBuffer::default();
        for (length, last) in
            [(LONG_WRITE, 0), (50_000, 0), (LONG_WRITE, 1), (100, 0), (ZEROS.len() + HEAD_OCTETS, 0)]
        {
            let mut write = vec![0; length];
            write[..HEAD_OCTETS].fill(7);
            write[length - 1] = last;
            stream.extend_from_slice(&write);
            buffer.push(write.into());
        }
        assert_eq!(buffer.length(), stream.len());
        for chunk in stream.chunks(1448) {
            assert_eq!(buffer.take(chunk.len()), chunk);
        }
    }
}
