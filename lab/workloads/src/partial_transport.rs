//! For tests: a transport that accepts messages in parts, as the model and sockets do.

use std::collections::BTreeMap;

use crate::FramingFn;
use crate::contract::{ConnectionId, Outgoing};

/// A transport for tests that accepts messages in parts: the octets that it has accepted, by connection.
#[derive(Debug, Default)]
pub(crate) struct PartialTransport {
    connections: BTreeMap<ConnectionId, StreamBuffer>,
    /// Whether the transport returns only the part of a message that it did not accept, as the model does.
    returns_rest: bool,
}

/// The octets that the transport has accepted on one stream.
#[derive(Debug, Default)]
struct StreamBuffer {
    stream: Vec<u8>,
    /// Number of octets that the transport has accepted of the current, incomplete message.
    accepted_octets: usize,
}

impl PartialTransport {
    /// Creates a transport that has accepted nothing.
    pub(crate) fn new(returns_rest: bool) -> Self {
        Self { returns_rest, ..Self::default() }
    }

    /// Accepts up to `room` octets of a message. Returns the message to be passed to the application in
    /// [`Input::Full`](crate::Input::Full); `None` if all of it was accepted.
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

    /// Returns the lengths of all accepted messages; the last message of each stream may be incomplete.
    ///
    /// # Panics If a message starts within another one, so that its octets do not begin with a header.
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
