//! The send queue of a byte stream.

use hol_simco::Message;

/// A queue of encoded messages; its first `sent` octets have been sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    octets: Vec<u8>,
    /// Number of octets at the start that have been sent.
    sent: usize,
}

impl Outbox {
    /// Capacity in octets that an empty queue keeps. It is small, because there may be ten thousand connections.
    const IDLE_CAPACITY: usize = 4096;

    /// Appends a message to the queue.
    pub fn push(&mut self, message: &Message) {
        if self.sent > self.octets.len() / 2 {
            self.octets.drain(..self.sent);
            self.sent = 0;
        }
        message.append_to(&mut self.octets);
    }

    /// Returns the octets that have not been sent.
    pub fn unsent(&self) -> &[u8] {
        &self.octets[self.sent..]
    }

    /// Removes the first `octets` octets, which have been sent.
    pub fn consume(&mut self, octets: usize) {
        self.sent += octets;
        if self.sent == self.octets.len() {
            self.octets.clear();
            self.octets.shrink_to(Self::IDLE_CAPACITY);
            self.sent = 0;
        }
    }
}
