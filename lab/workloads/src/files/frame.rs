//! The wire format: a header of fixed length in either direction, then the octets of a block, if any.
//!
//! The header stands for the headers of NetBIOS and SMB and the parameter words of a command. Together these
//! have 39 octets (a close) to 107 octets (the response to an open): MS-CIFS sections 2.2.3 and 2.2.4, RFC
//! 1002 section 4.3.

use bytes::{BufMut, Bytes, BytesMut};
use hol_base::Digest;
use hol_transport::FramingError;

use crate::WorkloadError;

/// Length of a request or reply without its block, in octets.
pub(super) const HEADER_OCTETS: usize = 64;
/// Octets at the start of the header that have a meaning; the others are zero.
const USED_OCTETS: usize = 40;

/// A command of the client to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// Create an empty file; replace it if it exists.
    Create,
    /// Open an existing file.
    Open,
    /// Append the block to the file.
    Write,
    /// Read a block of the file.
    Read,
    /// Finish writing the file; the reply contains the digest of the stored file.
    Store,
    /// Close the file after reading.
    Close,
    /// Remove the file from the server.
    Remove,
}

/// The header of a request, which its reply repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) command: Command,
    /// The number of the record to which the request belongs.
    pub(super) number: u32,
    /// The index of the file.
    pub(super) file: u32,
    /// The offset of the block in the file, in octets.
    pub(super) offset: u32,
    /// Octets of the block; in requests without a block, octets of the file.
    pub(super) octets: u32,
    /// The digest of the stored file in the reply to [`Command::Store`]; zero in all others.
    pub(super) digest: Digest,
}

const COMMANDS: [Command; 7] = [
    Command::Create,
    Command::Open,
    Command::Write,
    Command::Read,
    Command::Store,
    Command::Close,
    Command::Remove,
];

impl Header {
    /// Returns a frame of the header and a block.
    pub(super) fn followed_by(self, block: &[u8]) -> Bytes {
        let mut frame = BytesMut::with_capacity(HEADER_OCTETS + block.len());
        frame.put_u32((HEADER_OCTETS + block.len()) as u32);
        for word in [self.command as u32, self.number, self.file, self.offset, self.octets] {
            frame.put_u32(word);
        }
        frame.put_u128(self.digest.0);
        frame.put_bytes(0, HEADER_OCTETS - USED_OCTETS);
        frame.extend_from_slice(block);
        frame.freeze()
    }

    /// Splits a whole frame into header and block.
    pub(super) fn read(frame: &[u8]) -> Result<(Self, &[u8]), &'static str> {
        let (header, block) =
            frame.split_first_chunk::<HEADER_OCTETS>().ok_or("a request without a header")?;
        let (words, digest) =
            header[4..USED_OCTETS].split_first_chunk::<20>().expect("the header has 36 octets");
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|octet| words[4 * at + octet]));
        let command = *COMMANDS.get(word(0) as usize).ok_or("an unknown command")?;
        let digest = Digest(u128::from_be_bytes(digest.try_into().expect("a digest has 16 octets")));
        let [number, file, offset, octets] = [1, 2, 3, 4].map(word);
        Ok((Self { command, number, file, offset, octets, digest }, block))
    }
}

/// Returns the length of the frame that starts with `octets`, in octets; `None` if too few octets are known.
pub(super) fn length_of(octets: &[u8]) -> Result<Option<usize>, FramingError> {
    let Some(length) = octets.first_chunk().map(|length| u32::from_be_bytes(*length)) else {
        return Ok(None);
    };
    if (HEADER_OCTETS as u64..=WorkloadError::MAX_SIZE).contains(&length.into()) {
        Ok(Some(length as usize))
    } else {
        Err(FramingError("an invalid length"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn files_frame_round_trips(
            command in prop::sample::select(COMMANDS.to_vec()),
            [number, file, offset, octets]: [u32; 4],
            digest: u128,
            block: Vec<u8>,
        ) {
            let header = Header { command, number, file, offset, octets, digest: Digest(digest) };
            let frame = header.followed_by(&block);
            prop_assert_eq!(Header::read(&frame), Ok((header, block.as_slice())));
            prop_assert_eq!(length_of(&frame), Ok(Some(HEADER_OCTETS + block.len())));
        }

        #[test]
        fn arbitrary_octets_are_parsed_or_refused(octets: Vec<u8>) {
            let _ = (Header::read(&octets), length_of(&octets));
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        assert_eq!(length_of(&[0, 0, 0]), Ok(None));
        assert!(length_of(&[0, 0, 0, 63]).is_err());
        assert!(length_of(&[0xff; 4]).is_err());
    }
}
