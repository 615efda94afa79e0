//! The reasons why octets cannot be parsed.

use bytes::TryGetError;

/// Why octets cannot be parsed as a packet. A receiver drops such a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The octets end within a header, chunk, parameter, cause or option.
    #[error("the packet is truncated")]
    Truncated,
    /// The value of a length field does not fit the content.
    #[error("a length field contradicts its contents")]
    Length,
    /// The IP version is neither 4 nor 6, or is not that of the addresses.
    #[error("IP version {0} is neither 4 nor 6")]
    Version(u8),
    /// The packet is a fragment of an IP packet. Our endpoints never send fragments.
    #[error("the packet is a fragment")]
    Fragment,
    /// The protocol is neither TCP, SCTP nor UDP.
    #[error("IP protocol {0} is neither TCP, SCTP nor UDP")]
    Protocol(u8),
    /// A checksum is wrong: the packet was corrupted in transit.
    #[error("the checksum is wrong")]
    Checksum,
    /// A field has a value that its RFC does not define.
    #[error("a field has an undefined value")]
    Value,
}

impl From<TryGetError> for ParseError {
    fn from(_: TryGetError) -> Self {
        Self::Truncated
    }
}
