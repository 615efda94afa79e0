//! Messages that wait to be sent in a stream of octets.

use hol_simco::Message;

/// Encoded messages; the first `sent` octets are gone.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    octets: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// Room that is kept for the next messages when all are sent: little, for there may be ten thousand connections.
    const KEPT: usize = 4096;

    /// Puts a message behind those that wait.
    pub fn push(&mut self, message: &Message) {
        if self.sent > self.octets.len() / 2 {
            self.octets.drain(..self.sent);
            self.sent = 0;
        }
        message.append_to(&mut self.octets);
    }

    /// What waits.
    pub fn rest(&self) -> &[u8] {
        &self.octets[self.sent..]
    }

    /// The first octets of what waits are gone.
    pub fn take(&mut self, octets: usize) {
        self.sent += octets;
        if self.sent == self.octets.len() {
            self.octets.clear();
            self.octets.shrink_to(Self::KEPT);
            self.sent = 0;
        }
    }
}
