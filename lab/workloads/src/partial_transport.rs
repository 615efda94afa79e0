//! For tests: a transport that accepts messages in parts, as the model and sockets do.

use std::collections::BTreeMap;

use crate::FramingFn;
use crate::contract::{ConnectionId, Outgoing};

/// The octets accepted so far, by connection.
#[derive(Debug, Default)]
pub(crate) struct PartialTransport {
    connections: BTreeMap<ConnectionId, StreamBuffer>,
    /// Whether the transport returns only the part of a message that it cannot accept, as the model does.
    returns_rest: bool,
}

/// The octets of one stream.
#[derive(Debug, Default)]
struct StreamBuffer {
    stream: Vec<u8>,
    /// Number of octets that the transport has accepted of an incomplete message.
    accepted_octets: usize,
}

impl PartialTransport {
    /// Creates a transport that has accepted nothing.
    pub(crate) fn new(returns_rest: bool) -> Self {
        Self { returns_rest, ..Self::default() }
    }

    /// Accepts up to `room` octets of a message. Returns the message for [`Input::Full`](crate::Input::Full); `None` if
    /// all of it was accepted.
    pub(crate) fn send(&mut self, mut outgoing: Outgoing, room: usize) -> Option<Outgoing> {
        let StreamBuffer { stream, accepted_octets: part } =
            self.connections.entry(outgoing.connection).or_default();
        let left = outgoing.payload.slice(*part..);
        let taken = left.slice(..room.min(left.len()));
        stream.extend_from_slice(&taken);
        let is_whole = taken.len() == left.len();
        match (is_whole, self.returns_rest) {
            (true, _) => *part = 0,
            (false, false) => *part += taken.len(),
            (false, true) => outgoing.payload = left.slice(taken.len()..),
        }
        (!is_whole).then_some(outgoing)
    }

    /// Returns the lengths of all messages accepted, the last of each connection possibly incomplete.
    ///
    /// # Panics
    /// If a message starts in the middle of another, so that its octets are not the start of a message.
    pub(crate) fn lengths(&self, length_of: FramingFn) -> Vec<usize> {
        let mut lengths = Vec::new();
        for StreamBuffer { stream, .. } in self.connections.values() {
            let mut rest = &stream[..];
            while let Some(length) = length_of(rest).expect("a message begins at this position") {
                lengths.push(length);
                rest = &rest[length.min(rest.len())..];
            }
        }
        lengths
    }
}
