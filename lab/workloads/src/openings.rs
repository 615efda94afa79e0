//! The connections that a client opens first.

use std::ops::Range;

use crate::{ConnectionId, StreamLayout};

/// One per connection of the lanes.
#[derive(Debug)]
pub(crate) struct Openings {
    to_open: Range<u32>,
    /// Connections not yet open.
    missing: u32,
}

impl Openings {
    pub(crate) fn of(lanes: StreamLayout) -> Self {
        let all = u32::from(lanes.connections);
        Self { to_open: 0..all, missing: all }
    }

    /// Returns the next connection to request.
    pub(crate) fn next(&mut self) -> Option<ConnectionId> {
        self.to_open.next().map(ConnectionId)
    }

    /// Notes an open connection; returns true if it was the last.
    pub(crate) fn opened(&mut self) -> bool {
        self.missing = self.missing.saturating_sub(1);
        self.missing == 0
    }
}
