//! The wire format of pages: frames as in RFC 9113 section 4.1, for every HTTP version.
//!
//! HTTP/1 has no frames; there the nine octets of a frame header count as content, so that the sizes on the wire are
//! those of HTTP/1. The stream identifier is the number of the file's record; a request contains the size of its file
//! in octets.

use bytes::{Bytes, BytesMut};
use hol_transport::FramingError;

use super::ConnectionReuse;
use crate::padded_messages::Zeros;

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A frame with a part of a file.
    Data,
    /// A frame with a request, or with the head of a response.
    Headers,
}

/// The header of a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    /// Number of the record of the file to which the frame belongs.
    pub(crate) number: u32,
}

/// Length of a frame's header, in octets. RFC 9113 section 4.1.
const HEADER_OCTETS: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;

impl Frame {
    /// Minimum length of a frame in octets: its header and the size of a file.
    pub(crate) const MIN: u64 = 16;
    /// Maximum length of a frame without its header, in octets. RFC 9113 section 4.2.
    pub(crate) const MAX: u64 = 1 << 14;

    /// Parses a whole frame.
    pub(crate) fn read(octets: &[u8]) -> Result<Self, &'static str> {
        let Some(header) = octets.first_chunk::<HEADER_OCTETS>() else {
            return Err("the frame has no header");
        };
        let number = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        match header[3] {
            DATA => Ok(Self { kind: FrameKind::Data, number }),
            HEADERS => Ok(Self { kind: FrameKind::Headers, number }),
            _ => Err("unknown frame type"),
        }
    }
}

/// Returns the length of the frame that starts with `octets`.
pub(crate) fn length_of(octets: &[u8]) -> Result<Option<usize>, FramingError> {
    let Some([a, b, c]) = octets.first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
    if length as u64 > Frame::MAX {
        Err(FramingError("an invalid length"))
    } else {
        Ok(Some(HEADER_OCTETS + length))
    }
}

/// Returns the size of the file that a request is for, in octets; `None` if the request has no size.
pub(crate) fn requested_octets(request: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*request.get(HEADER_OCTETS..)?.first_chunk()?))
}

/// Returns how many octets of a response, including its head, are in a frame of `length` octets.
pub(crate) fn octets(way: ConnectionReuse, frame: Frame, length: usize) -> u32 {
    let header =
        if way == ConnectionReuse::Multiplexed && frame.kind == FrameKind::Data { HEADER_OCTETS } else { 0 };
    (length - header) as u32
}

/// Builds the frames of requests and responses.
#[derive(Debug, Default)]
pub(crate) struct FrameBuilder {
    zeros: Zeros,
}

impl FrameBuilder {
    /// Builds a request of `octets` octets for a file of `size` octets.
    pub(crate) fn build_request(&mut self, octets: u64, number: u32, size: u32) -> Bytes {
        let mut frame = self.frame(octets as usize, HEADERS, number);
        frame[HEADER_OCTETS..HEADER_OCTETS + 4].copy_from_slice(&size.to_be_bytes());
        frame.freeze()
    }

    /// Builds the head of a response, with as much of the file as fits into the same packet, because Nagle's algorithm
    /// would delay a separate write. `left` octets of the file remain; also returns how many of them are included.
    pub(crate) fn build_head(&mut self, octets: u64, number: u32, left: u32) -> (Bytes, u32) {
        const PACKET_OCTETS: u32 = 1200;
        let room = PACKET_OCTETS.saturating_sub(octets as u32);
        // The rest must leave room for a header.
        let part = if left < room + HEADER_OCTETS as u32 { left } else { room };
        (self.frame(octets as usize + part as usize, HEADERS, number).freeze(), part)
    }

    /// Builds the next part of a file; also returns the number of octets in it. `left` octets of the file
    /// remain.
    pub(crate) fn build_data(&mut self, way: ConnectionReuse, number: u32, left: u32) -> (Bytes, u32) {
        const MAX: u32 = Frame::MAX as u32;
        if way == ConnectionReuse::Multiplexed {
            let part = left.min(MAX);
            return (self.frame(HEADER_OCTETS + part as usize, DATA, number).freeze(), part);
        }
        // The rest must leave room for a header.
        let part = if left > MAX && left - MAX < HEADER_OCTETS as u32 {
            MAX - HEADER_OCTETS as u32
        } else {
            left.min(MAX)
        };
        (self.frame(part as usize, DATA, number).freeze(), part)
    }

    fn frame(&mut self, octets: usize, kind: u8, number: u32) -> BytesMut {
        let mut frame = self.zeros.take(octets);
        frame[..4].copy_from_slice(&(((octets - HEADER_OCTETS) as u32) << 8 | u32::from(kind)).to_be_bytes());
        frame[5..HEADER_OCTETS].copy_from_slice(&number.to_be_bytes());
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9113 section 4.1.
    #[test]
    fn frame_has_the_layout_of_http_2() {
        let request = FrameBuilder::default().build_request(400, 0x1234, 13_500);
        assert_eq!(request[..9], [0, 1, 135, 1, 0, 0, 0, 0x12, 0x34]);
        assert_eq!((length_of(&request), requested_octets(&request)), (Ok(Some(400)), Some(13_500)));
        assert_eq!(length_of(&request[..2]), Ok(None));
    }

    proptest! {
        #[test]
        fn parts_of_a_file_add_up_to_its_size(size in 16u32..200_000, multiplexed: bool) {
            let way = if multiplexed { ConnectionReuse::Multiplexed } else { ConnectionReuse::Pipelined };
            let (mut frames, mut left) = (FrameBuilder::default(), size);
            let (first, part) = frames.build_head(300, 7, left);
            prop_assert_eq!((first.len(), length_of(&first)), (300 + part as usize, Ok(Some(first.len()))));
            left -= part;
            while left > 0 {
                let (octets_on_wire, part) = frames.build_data(way, 7, left);
                let frame = Frame::read(&octets_on_wire).unwrap();
                prop_assert_eq!(frame, Frame { kind: FrameKind::Data, number: 7 });
                prop_assert_eq!(octets(way, frame, octets_on_wire.len()), part);
                prop_assert_eq!(length_of(&octets_on_wire), Ok(Some(octets_on_wire.len())));
                left -= part;
            }
        }

        #[test]
        fn arbitrary_octets_are_parsed_or_refused(octets: Vec<u8>) {
            let _ = (Frame::read(&octets), requested_octets(&octets), length_of(&octets));
        }
    }
}
