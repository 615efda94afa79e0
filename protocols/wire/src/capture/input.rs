//! Octets in the order of a file, counted.

use std::io::{self, Read};

/// Where octets come from.
#[derive(Debug)]
pub(super) struct Input<R> {
    source: R,
    offset: u64,
}

/// In which order a number's octets stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

/// Why there is no further packet; what is missing is where.
pub(super) enum Halt {
    /// The capture ends in order.
    End,
    /// The octets end too early.
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

    /// How many octets have been read.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next octets, none of them, or a cut.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Halt> {
        let octets = self.octets(N)?;
        Ok(octets.try_into().expect("as many as were asked for"))
    }

    /// The same of a number that a file tells: no more memory is taken than there are octets.
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

    /// The same where the file must not end.
    pub fn rest(&mut self, count: usize) -> Result<Vec<u8>, Halt> {
        self.octets(count).map_err(|halt| if matches!(halt, Halt::End) { Halt::Cut } else { halt })
    }
}
