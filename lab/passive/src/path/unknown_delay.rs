//! Why a capture does not show the delay of a path.

use super::Flows;

/// The reason why the round-trip time is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnknownDelay {
    /// Only one host sent packets.
    #[error("the capture has packets of only one direction; capture both")]
    OneDirection,
    /// No connection was established.
    #[error(
        "each connection was refused (RST, ABORT), so only a part of the round trip is visible; capture an accepted connection"
    )]
    Refused,
    /// The associations were opened over another path, and only one host sent data over this one.
    #[error(
        "the handshake was on another path, and no data of one of the hosts was acknowledged on this path; capture data of both hosts on it"
    )]
    HandshakeOnAnotherPath,
    /// Packets of the answered handshakes were retransmitted, and nothing else shows the round-trip time.
    #[error(
        "a packet of each answered handshake was retransmitted, and the reply may belong to either copy (RFC 6298 section 3); capture another \
         connection"
    )]
    AmbiguousHandshake,
    /// The handshakes were not captured, and only one host sent data.
    #[error(
        "the capture has no handshake, and data of only one host, so that the part of the round trip to this host is not visible; \
         capture the beginning of a connection"
    )]
    NoHandshake,
    /// There are handshakes, but one host did not reply.
    #[error("one host never replied to the other; capture an established connection")]
    NoReply,
}

impl Flows<'_> {
    /// Returns why the shortest time to a reply is unknown for a direction.
    pub(super) fn why_unknown(&self) -> UnknownDelay {
        let has_packets = |direction: usize| {
            self.sides(direction).any(|(conversation, side, path)| conversation.packets[path][side] > 0)
        };
        let all = || self.conversations.iter().map(|(conversation, _)| *conversation);
        let mut answered = all().filter(|conversation| conversation.has_answered_handshake()).peekable();
        if !has_packets(0) || !has_packets(1) {
            UnknownDelay::OneDirection
        } else if all().all(|conversation| conversation.is_refused) {
            UnknownDelay::Refused
        } else if self.conversations.iter().all(|(_, path)| *path > 0) {
            UnknownDelay::HandshakeOnAnotherPath
        } else if answered.peek().is_some() && answered.all(|conversation| conversation.is_ambiguous()) {
            UnknownDelay::AmbiguousHandshake
        } else if all().all(|conversation| !conversation.is_whole) {
            UnknownDelay::NoHandshake
        } else {
            UnknownDelay::NoReply
        }
    }
}
