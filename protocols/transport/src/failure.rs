//! The reasons why a connection or association fails.

use std::fmt;

/// Why a connection failed: the reason in [`Event::Failed`](crate::Event::Failed). Its text uses the
/// terms of the RFCs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// The peer has no listener, or refused the association.
    Refused,
    /// The peer sent a TCP segment with RST.
    Reset,
    /// The peer sent an SCTP ABORT.
    AbortedByPeer,
    /// The peer's endpoint sent a QUIC CONNECTION_CLOSE.
    ClosedByPeer,
    /// The peer's application closed a QUIC connection with an error code.
    ClosedByPeerApplication,
    /// The local application aborted the connection.
    Aborted,
    /// TCP reached its maximum number of retransmissions. RFC 9293 section 3.8.3.
    TimedOut,
    /// TCP reached its maximum number of zero-window probes. RFC 9293 section 3.8.6.1.
    WindowClosed,
    /// SCTP reached its maximum number of INITs or COOKIE ECHOs. RFC 9260 section 4.
    MaxInitRetransmits,
    /// SCTP reached its maximum number of retransmissions. RFC 9260 section 8.1.
    MaxRetransmits,
    /// The SCTP shutdown took too long. RFC 9260 section 9.2, T5-shutdown-guard.
    ShutdownTimedOut,
    /// No packet arrived during QUIC's idle timeout. RFC 9000 section 10.1.
    IdleTimeout,
    /// The host lost the local address of the connection.
    AddressRemoved,
    /// The SCTP cookie was too old when it returned. RFC 9260 section 5.2.6.
    StaleCookie,
    /// SCTP's INIT ACK contained invalid values. RFC 9260 section 5.1.
    UnusableInitAck,
    /// The application sent a message that is larger than the send buffer.
    MessageTooLong,
    /// The peer broke a rule of the protocol.
    Violation(Violation),
    /// The peer has no state of the QUIC connection: it sent a stateless reset. RFC 9000 section 10.3.
    StatelessReset,
    /// The endpoints have no version of QUIC in common.
    VersionMismatch,
    /// QUIC's receiver exceeded its limit of pieces of a stream that it buffers.
    TooManyGaps,
    /// The endpoint has no unused QUIC connection ID left.
    ConnectionIdsExhausted,
}

/// A violation of the protocol by the peer, after which the connection cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// A SACK or SHUTDOWN acknowledged a TSN that was not sent.
    AcknowledgedUnsent,
    /// A chunk that must be the only one in its packet was bundled with others. RFC 9260 section 6.10.
    Bundled,
    /// A DATA chunk contained no user data. RFC 9260 section 6.2.
    NoUserData,
    /// A DATA chunk arrived although I-DATA was negotiated. RFC 8260 section 2.2.3.
    Data,
    /// An I-DATA chunk arrived that was not negotiated. RFC 8260 section 2.2.3.
    InterleavedData,
    /// An ASCONF-ACK arrived although no ASCONF was sent. RFC 5061 section 5.3.
    AsconfAck,
    /// The peer violated QUIC's transport protocol. RFC 9000 section 20.1.
    Transport,
}

impl Failure {
    /// Returns the reason as text, such as "connection refused" or "association max retrans exceeded".
    pub const fn text(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Reset => "connection reset",
            Self::AbortedByPeer => "aborted by the peer",
            Self::ClosedByPeer => "closed by the peer",
            Self::ClosedByPeerApplication => "closed by the peer's application",
            Self::Aborted => "aborted by the application",
            Self::TimedOut => "connection timed out",
            Self::WindowClosed => "the peer's window stays closed",
            Self::MaxInitRetransmits => "max init retransmits exceeded",
            Self::MaxRetransmits => "association max retrans exceeded",
            Self::ShutdownTimedOut => "shutdown guard timer expired",
            Self::IdleTimeout => "idle timeout",
            Self::AddressRemoved => "the local address is gone",
            Self::StaleCookie => "stale cookie",
            Self::UnusableInitAck => "the peer's INIT ACK is unusable",
            Self::MessageTooLong => "a message is longer than the send buffer",
            Self::Violation(violation) => violation.text(),
            Self::StatelessReset => "stateless reset",
            Self::VersionMismatch => "no QUIC version in common",
            Self::TooManyGaps => "more gaps in a stream than quinn buffers",
            Self::ConnectionIdsExhausted => "all connection IDs are exhausted",
        }
    }
}

impl Violation {
    const fn text(self) -> &'static str {
        match self {
            Self::AcknowledgedUnsent => "the peer acknowledged data that were not sent",
            Self::Bundled => "the peer bundled INIT ACK or SHUTDOWN COMPLETE with other chunks",
            Self::NoUserData => "the peer sent DATA without user data",
            Self::Data => "the peer sent DATA although I-DATA was negotiated",
            Self::InterleavedData => "the peer sent I-DATA although it was not negotiated",
            Self::AsconfAck => "the peer sent an ASCONF-ACK without a request",
            Self::Transport => "transport error",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Failure {}
