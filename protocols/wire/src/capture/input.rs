//! Reads a file in order and counts its octets.

use std::io::{self, Read};

/// The source of octets.
#[derive(Debug)]
pub(super) struct Input<R> {
    source: R,
    offset: u64,
}

/// The byte order of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

/// Why there is no further packet, without its position.
pub(super) enum Halt {
    /// The capture ends in order.
    End,
    /// The input is truncated.
    Cut,
    Broken(u64, &'static str),
    Read(io::Error),
}

impl Order {
    pub fn word(self, octets: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(octets),
            Self::Big => u32::from_be_bytes(octets),
        }
    }

    pub fn half(self, octets: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(octets),
            Self::Big => u16::from_be_bytes(octets),
        }
    }
}

impl<R: Read> Input<R> {
    pub const fn new(source: R) -> Self {
        Self { source, offset: 0 }
    }

    /// Returns how many octets have been read.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next octets; none at the end of the file; otherwise it is truncated.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Halt> {
        let octets = self.octets(N)?;
        Ok(octets.try_into().expect("as many as were asked for"))
    }

    /// Returns a number of octets given by the file; allocates no more memory than there are octets.
    pub fn octets(&mut self, count: usize) -> Result<Vec<u8>, Halt> {
        let mut octets = Vec::new();
        let read = self.source.by_ref().take(count as u64).read_to_end(&mut octets).map_err(Halt::Read)?;
        self.offset += read as u64;
        match read {
            _ if read == count => Ok(octets),
            0 => Err(Halt::End),
            _ => Err(Halt::Cut),
        }
    }

    /// Returns this many octets where the file must not end.
    pub fn rest(&mut self, count: usize) -> Result<Vec<u8>, Halt> {
        self.octets(count).map_err(|halt| if matches!(halt, Halt::End) { Halt::Cut } else { halt })
    }
}
