//! Reads a file in order and counts its octets.

use std::io::{self, Read};

/// Reads a capture, and counts its octets.
#[derive(Debug)]
pub(super) struct Input<R> {
    source: R,
    offset: u64,
}

/// The byte order of the numbers in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

/// Why a capture contains no further packet.
pub(super) enum StopReason {
    /// The capture ends after a complete packet.
    End,
    /// The capture ends within a packet or block.
    Truncated,
    Broken(u64, &'static str),
    Read(io::Error),
}

impl ByteOrder {
    pub fn decode_u32(self, octets: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(octets),
            Self::Big => u32::from_be_bytes(octets),
        }
    }

    pub fn decode_u16(self, octets: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(octets),
            Self::Big => u16::from_be_bytes(octets),
        }
    }
}

impl<R: Read> Input<R> {
    /// Creates an input that reads from `source`.
    pub const fn new(source: R) -> Self {
        Self { source, offset: 0 }
    }

    /// Returns how many octets have been read.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next `N` octets. Fails with `StopReason::End` at the end of the file, and with
    /// `StopReason::Truncated` if the file ends within these octets.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], StopReason> {
        let octets = self.octets(N)?;
        Ok(octets.try_into().expect("the slice has the requested length"))
    }

    /// Returns the next `count` octets; fails like `take`. As `count` comes from the file and may be wrong, memory
    /// is allocated only for octets that are read.
    pub fn octets(&mut self, count: usize) -> Result<Vec<u8>, StopReason> {
        let mut octets = Vec::new();
        let read =
            self.source.by_ref().take(count as u64).read_to_end(&mut octets).map_err(StopReason::Read)?;
        self.offset += read as u64;
        match read {
            _ if read == count => Ok(octets),
            0 => Err(StopReason::End),
            _ => Err(StopReason::Truncated),
        }
    }

    /// Returns the next `count` octets; fails with `StopReason::Truncated` if the file ends before or within them.
    pub fn rest(&mut self, count: usize) -> Result<Vec<u8>, StopReason> {
        self.octets(count)
            .map_err(|halt| if matches!(halt, StopReason::End) { StopReason::Truncated } else { halt })
    }
}
