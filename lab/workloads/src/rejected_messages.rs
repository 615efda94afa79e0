//! Messages that the transport rejected, kept until it has room.

use std::collections::VecDeque;

use crate::ConnectionId;
use crate::contract::Outgoing;

/// The messages that the transport has rejected, oldest first; at most one per connection.
#[derive(Debug, Default)]
pub(crate) struct RejectedMessages {
    messages: VecDeque<Outgoing>,
    /// Number of messages that still have to be tried again.
    retries_left: usize,
}

impl RejectedMessages {
    /// Adds a message that the transport rejected.
    pub(crate) fn add(&mut self, message: Outgoing) {
        self.messages.push_back(message);
    }

    /// Lets all messages be tried again, because a connection has room.
    pub(crate) fn retry(&mut self) {
        self.retries_left = self.messages.len();
    }

    /// Returns the next message to try again.
    pub(crate) fn next(&mut self) -> Option<Outgoing> {
        self.retries_left = self.retries_left.checked_sub(1)?;
        self.messages.pop_front()
    }

    /// Removes the rejected message of a failed connection.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.messages.retain(|message| message.connection != connection);
        self.retries_left = self.retries_left.min(self.messages.len());
    }

    /// Returns the message that was rejected first.
    pub(crate) fn oldest(&self) -> Option<&Outgoing> {
        self.messages.front()
    }

    /// Returns the number of rejected messages.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns whether a rejected message waits for room on `connection`.
    pub(crate) fn waits_for(&self, connection: ConnectionId) -> bool {
        self.messages.iter().any(|message| message.connection == connection)
    }
}
