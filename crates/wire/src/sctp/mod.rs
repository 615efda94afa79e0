//! The SCTP common header and its chunks. RFC 9260 section 3.

mod control;
mod data;
mod sack;

pub use control::{Cause, ForwardTsn, Init, Parameter};
pub use data::{Data, DataFlags, Ssn, Tsn};
pub use sack::{GapAckBlock, Sack};

use bytes::Bytes;
use smallvec::SmallVec;

/// One SCTP packet: the common header and at least one chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Verification tag. RFC 9260 section 8.5.
    pub verification_tag: u32,
    /// Chunks in the order in which they are bundled.
    pub chunks: SmallVec<[Chunk; 2]>,
}

/// A chunk. RFC 9260 section 3.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// User data, section 3.3.1.
    Data(Data),
    /// Initiation, section 3.3.2.
    Init(Box<Init>),
    /// Initiation acknowledgement, section 3.3.3.
    InitAck(Box<Init>),
    /// Selective acknowledgement, section 3.3.4.
    Sack(Sack),
    /// Heartbeat request with the sender's opaque information, section 3.3.5.
    Heartbeat(Bytes),
    /// Heartbeat acknowledgement, section 3.3.6.
    HeartbeatAck(Bytes),
    /// Abort, section 3.3.7. `reflected` is the T bit.
    Abort {
        /// The verification tag is the peer's own, reflected.
        reflected: bool,
        /// Why.
        causes: Vec<Cause>,
    },
    /// Shutdown, section 3.3.8.
    Shutdown {
        /// Cumulative TSN ack.
        cumulative_tsn: Tsn,
    },
    /// Shutdown acknowledgement, section 3.3.9.
    ShutdownAck,
    /// Operation error, section 3.3.10.
    Error(Vec<Cause>),
    /// State cookie, section 3.3.11.
    CookieEcho(Bytes),
    /// Cookie acknowledgement, section 3.3.12.
    CookieAck,
    /// Shutdown complete, section 3.3.13. `reflected` is the T bit.
    ShutdownComplete {
        /// The verification tag is the peer's own, reflected.
        reflected: bool,
    },
    /// Forward cumulative TSN. RFC 3758 section 3.2.
    ForwardTsn(Box<ForwardTsn>),
    /// A chunk of a type we do not know: kept so that it can be reported. RFC 9260 section 3.2.
    Unknown {
        /// Chunk type; its top two bits say what the receiver does.
        kind: u8,
        /// Chunk flags.
        flags: u8,
        /// Chunk value.
        value: Bytes,
    },
}

impl Packet {
    /// Octets of the common header.
    pub const HEADER: usize = 12;

    /// Common header and chunks with their padding, in octets.
    pub fn length(&self) -> usize {
        Self::HEADER + self.chunks.iter().map(Chunk::length).sum::<usize>()
    }
}

impl Chunk {
    /// Octets of a chunk header.
    pub const HEADER: usize = 4;

    /// Octets on the wire, padding to a multiple of four included.
    pub fn length(&self) -> usize {
        let causes = |causes: &[Cause]| causes.iter().map(Cause::length).sum::<usize>();
        let value = match self {
            Self::Data(data) => return data.length(),
            Self::Sack(sack) => return sack.length(),
            Self::Init(init) | Self::InitAck(init) => init.value_length(),
            Self::Heartbeat(info) | Self::HeartbeatAck(info) => 4 + info.len(),
            Self::Abort { causes: list, .. } | Self::Error(list) => causes(list),
            Self::Shutdown { .. } => 4,
            Self::ShutdownAck | Self::CookieAck | Self::ShutdownComplete { .. } => 0,
            Self::CookieEcho(cookie) => cookie.len(),
            Self::ForwardTsn(forward) => forward.value_length(),
            Self::Unknown { value, .. } => value.len(),
        };
        Self::HEADER + value.next_multiple_of(4)
    }
}
