//! Unchanged frames: the payload of MPEG audio, RTP payload type 14. RFC 2250 sections 3.2 and 3.5.

use crate::ParseError;

/// Length in octets of a payload's header: 16 zero bits, and `Frag_offset`.
pub const HEADER_LENGTH: usize = 4;

/// Splits a frame into as few payloads of at most `room` octets as possible.
///
/// # Panics
/// If `room` is not longer than [`HEADER_LENGTH`].
pub fn split_into_payloads(frame: &[u8], room: usize) -> impl Iterator<Item = Vec<u8>> {
    let part = room
        .checked_sub(HEADER_LENGTH)
        .filter(|part| *part > 0)
        .expect("the packet has room for a part of a frame");
    frame.chunks(part).enumerate().map(move |(index, octets)| {
        let offset = ((part * index) as u16).to_be_bytes();
        [&[0, 0], &offset[..], octets].concat()
    })
}

/// Returns the offset in the frame and the octets of a payload, which are a part of a frame or several whole
/// ones.
///
/// # Errors
/// If the payload is too short.
pub fn read(payload: &[u8]) -> Result<(u16, &[u8]), ParseError> {
    let (header, octets) =
        payload.split_first_chunk::<HEADER_LENGTH>().ok_or(ParseError("an audio payload has no header"))?;
    Ok((u16::from_be_bytes([header[2], header[3]]), octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 2250 section 3.2: a frame of 1250 octets in packets of 500.
    #[test]
    fn a_long_frame_straddles_packets() {
        let frame = [7; 1250];
        let payloads: Vec<Vec<u8>> = split_into_payloads(&frame, 500).collect();
        let offsets: Vec<&[u8]> = payloads.iter().map(|payload| &payload[..HEADER_LENGTH]).collect();
        assert_eq!(offsets, [[0, 0, 0, 0], [0, 0, 1, 240], [0, 0, 3, 224]]);
        assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), [500, 500, 262]);
        assert!(read(&payloads[0][..3]).is_err());
    }

    proptest! {
        #[test]
        fn parts_join_to_the_frame(frame in proptest::collection::vec(any::<u8>(), 0..2000), room in 5usize..1500) {
            let mut whole = Vec::new();
            for payload in split_into_payloads(&frame, room) {
                let (offset, octets) = read(&payload).unwrap();
                prop_assert!(payload.len() <= room && usize::from(offset) == whole.len());
                whole.extend_from_slice(octets);
            }
            prop_assert_eq!(whole, frame);
        }
    }
}
