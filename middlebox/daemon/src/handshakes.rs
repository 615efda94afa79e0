//! Connections whose handshake is under way: some at a time, for each of them may hold 64 KiB.

use std::collections::VecDeque;

use hol_simco::SessionId;

/// Those that have not proved anything yet, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Handshakes(VecDeque<SessionId>);

impl Handshakes {
    /// So many at a time.
    pub const MOST: usize = 512;

    /// Another one begins; returns the one that is to make room for it.
    pub fn begin(&mut self, id: SessionId) -> Option<SessionId> {
        self.0.push_back(id);
        if self.0.len() > Self::MOST { self.0.pop_front() } else { None }
    }

    /// It is over, one way or the other.
    pub fn end(&mut self, id: SessionId) {
        self.0.retain(|other| *other != id);
    }

    pub fn has(&self, id: SessionId) -> bool {
        self.0.contains(&id)
    }
}
