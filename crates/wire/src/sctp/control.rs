//! The chunks that set up, keep and end an association, and the error causes. RFC 9260 sections 3.3 and 3.3.10.

use bytes::Bytes;
use smallvec::SmallVec;

use super::{Ssn, Tsn};
use crate::Address;

/// The fixed part and the parameters of INIT and INIT ACK. RFC 9260 sections 3.3.2 and 3.3.3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// The tag that the peer puts into its packets; never zero.
    pub initiate_tag: u32,
    /// Advertised receiver window credit in octets.
    pub a_rwnd: u32,
    /// Outbound streams that the sender wants.
    pub outbound_streams: u16,
    /// Inbound streams that the sender can serve.
    pub inbound_streams: u16,
    /// The first TSN that the sender will use.
    pub initial_tsn: Tsn,
    /// Optional and variable-length parameters, in order.
    pub parameters: Vec<Parameter>,
}

/// A parameter of INIT or INIT ACK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// An address of the sender's, section 3.3.2.1.1.
    Ipv4Address(Address),
    /// State cookie, section 3.3.3.1.1.
    StateCookie(Bytes),
    /// Cookie preservative in milliseconds, section 3.3.2.1.3.
    CookiePreservative(u32),
    /// FORWARD TSN is supported. RFC 3758 section 3.1.
    ForwardTsnSupported,
    /// Chunk types beyond RFC 9260 that are supported. RFC 5061 section 4.2.7.
    SupportedExtensions(Vec<u8>),
    /// A parameter of a type we do not know.
    Unknown {
        /// Parameter type; its top two bits say what the receiver does.
        kind: u16,
        /// Parameter value.
        value: Bytes,
    },
}

/// An error cause of ABORT and ERROR. RFC 9260 section 3.3.10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// 1: a DATA chunk named a stream that does not exist.
    InvalidStreamIdentifier(u16),
    /// 2: a mandatory parameter of this type was missing.
    MissingMandatoryParameter(u16),
    /// 3: the cookie was this many microseconds too old.
    StaleCookie(u32),
    /// 4: out of resource.
    OutOfResource,
    /// 6: the chunk that was not understood.
    UnrecognizedChunk(Bytes),
    /// 7: a mandatory parameter was invalid.
    InvalidMandatoryParameter,
    /// 9: a DATA chunk without user data.
    NoUserData(Tsn),
    /// 10: a cookie arrived while the association was shutting down.
    CookieWhileShuttingDown,
    /// 12: the user asked for it.
    UserInitiatedAbort(Bytes),
    /// 13: the peer broke the protocol.
    ProtocolViolation(Bytes),
    /// Any other.
    Other {
        /// Cause code.
        code: u16,
        /// Cause-specific information.
        value: Bytes,
    },
}

/// FORWARD TSN: what the sender has given up. RFC 3758 section 3.2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardTsn {
    /// The receiver is to treat everything up to here as received.
    pub new_cumulative_tsn: Tsn,
    /// The largest skipped stream sequence number of each ordered stream that lost a message.
    pub skipped: SmallVec<[(u16, Ssn); 2]>,
}

impl Init {
    pub(super) fn value_length(&self) -> usize {
        16 + self.parameters.iter().map(Parameter::length).sum::<usize>()
    }
}

impl Parameter {
    /// Octets on the wire, padding included.
    pub fn length(&self) -> usize {
        let value = match self {
            Self::Ipv4Address(_) | Self::CookiePreservative(_) => 4,
            Self::StateCookie(cookie) => cookie.len(),
            Self::ForwardTsnSupported => 0,
            Self::SupportedExtensions(kinds) => kinds.len(),
            Self::Unknown { value, .. } => value.len(),
        };
        4 + value.next_multiple_of(4)
    }
}

impl Cause {
    /// Octets on the wire, padding included.
    pub fn length(&self) -> usize {
        let value = match self {
            Self::InvalidStreamIdentifier(_) | Self::StaleCookie(_) | Self::NoUserData(_) => 4,
            Self::MissingMandatoryParameter(_) => 6,
            Self::OutOfResource | Self::InvalidMandatoryParameter | Self::CookieWhileShuttingDown => 0,
            Self::UnrecognizedChunk(value) | Self::UserInitiatedAbort(value) => value.len(),
            Self::ProtocolViolation(value) | Self::Other { value, .. } => value.len(),
        };
        4 + value.next_multiple_of(4)
    }
}

impl ForwardTsn {
    pub(super) fn value_length(&self) -> usize {
        4 + 4 * self.skipped.len()
    }
}
