//! The reasons why octets cannot be parsed.

use bytes::TryGetError;

/// The reason why octets cannot be parsed. A receiver always drops such a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The octets end inside a header, chunk, parameter, cause or option.
    #[error("the packet is truncated")]
    Truncated,
    /// A length field contradicts the layout of its content.
    #[error("a length field contradicts its contents")]
    Length,
    /// Neither IP version 4 nor 6, or not the version of the addresses.
    #[error("IP version {0} is neither 4 nor 6")]
    Version(u8),
    /// A fragment of an IP packet, which our endpoints never send.
    #[error("the packet is a fragment")]
    Fragment,
    /// Neither TCP, SCTP nor UDP.
    #[error("IP protocol {0} is neither TCP, SCTP nor UDP")]
    Protocol(u8),
    /// A checksum is wrong: the packet was corrupted on the way.
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
