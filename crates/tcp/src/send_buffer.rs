//! Octets that the application has written and TCP has not sent.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// A queue of octets that gives back whole writes without copying them.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    writes: VecDeque<Bytes>,
    length: usize,
}

impl SendBuffer {
    /// Octets queued.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Nothing is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a write.
    pub(crate) fn push(&mut self, octets: Bytes) {
        self.length += octets.len();
        self.writes.push_back(octets);
    }

    /// Takes exactly `size` octets from the front.
    pub(crate) fn take(&mut self, size: usize) -> Bytes {
        assert!(size <= self.length, "{size} octets wanted, {} queued", self.length);
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
            let first = self.writes.front_mut().expect("the length counts what is queued");
            if first.len() > missing {
                octets.extend_from_slice(&first.split_to(missing));
            } else {
                octets.extend_from_slice(first);
                self.writes.pop_front();
            }
        }
        octets.freeze()
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_gives_the_stream_back() {
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
}
