//! For tests: a transport that takes messages in parts, as the model's and as sockets do.

use std::collections::BTreeMap;

use crate::LengthOf;
use crate::contract::{ConnectionId, Outgoing};

/// What it has taken of each connection.
#[derive(Debug, Default)]
pub(crate) struct InParts {
    connections: BTreeMap<ConnectionId, Taken>,
    /// It returns the rest of a message, as the model does, and not the whole.
    returns_rest: bool,
}

#[derive(Debug, Default)]
struct Taken {
    stream: Vec<u8>,
    /// Octets of the message that it has taken in part.
    part: usize,
}

impl InParts {
    pub(crate) fn new(returns_rest: bool) -> Self {
        Self { returns_rest, ..Self::default() }
    }

    /// Takes up to `room` octets of a message; returns what the application gets back.
    pub(crate) fn send(&mut self, mut outgoing: Outgoing, room: usize) -> Option<Outgoing> {
        let Taken { stream, part } = self.connections.entry(outgoing.connection).or_default();
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

    /// Returns the lengths of all messages that it has taken, the last of each connection whole or not.
    ///
    /// # Panics
    /// If one stands in the middle of another, so that octets are no beginning of a message.
    pub(crate) fn lengths(&self, length_of: LengthOf) -> Vec<usize> {
        let mut lengths = Vec::new();
        for Taken { stream, .. } in self.connections.values() {
            let mut rest = &stream[..];
            while let Some(length) = length_of(rest).expect("a message begins here") {
                lengths.push(length);
                rest = &rest[length.min(rest.len())..];
            }
        }
        lengths
    }
}
