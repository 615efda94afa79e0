//! Connections in their handshake, limited because each may hold 64 KiB.

use std::collections::VecDeque;

use hol_simco::SessionId;

/// Unauthenticated connections, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Handshakes(VecDeque<SessionId>);

impl Handshakes {
    /// Maximum number.
    pub const MOST: usize = 512;

    /// Adds one; returns the one to close in exchange.
    pub fn begin(&mut self, id: SessionId) -> Option<SessionId> {
        self.0.push_back(id);
        if self.0.len() > Self::MOST { self.0.pop_front() } else { None }
    }

    /// Removes one after success or failure.
    pub fn end(&mut self, id: SessionId) {
        self.0.retain(|other| *other != id);
    }

    pub fn has(&self, id: SessionId) -> bool {
        self.0.contains(&id)
    }
}
