//! What the transport refused, until it has room.

use std::collections::VecDeque;

use crate::ConnectionId;
use crate::contract::Outgoing;

/// At most one message for each connection, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Held {
    messages: VecDeque<Outgoing>,
    /// How many of them are to be tried again.
    to_retry: usize,
}

impl Held {
    /// The transport refused `message`.
    pub(crate) fn refused(&mut self, message: Outgoing) {
        self.messages.push_back(message);
    }

    /// Some connection has room again; which one is only known by trying.
    pub(crate) fn retry(&mut self) {
        self.to_retry = self.messages.len();
    }

    /// The next that is to be tried again.
    pub(crate) fn next(&mut self) -> Option<Outgoing> {
        self.to_retry = self.to_retry.checked_sub(1)?;
        self.messages.pop_front()
    }

    /// What waits for a connection that failed is wanted no more.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.messages.retain(|message| message.connection != connection);
        self.to_retry = self.to_retry.min(self.messages.len());
    }

    /// The message that has been waiting longest.
    pub(crate) fn oldest(&self) -> Option<&Outgoing> {
        self.messages.front()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether one waits for `connection`.
    pub(crate) fn waits_for(&self, connection: ConnectionId) -> bool {
        self.messages.iter().any(|message| message.connection == connection)
    }
}
