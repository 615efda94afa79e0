//! The connections that a client opens first.

use std::ops::Range;

use crate::{ConnectionId, StreamLayout};

/// The connections that a client opens at the start, one per connection of the stream layout.
#[derive(Debug)]
pub(crate) struct ConnectionOpenings {
    to_open: Range<u32>,
    /// Number of connections that are still to be opened.
    missing_count: u32,
}

impl ConnectionOpenings {
    /// Creates the openings of all connections that a stream layout needs.
    pub(crate) fn new(lanes: StreamLayout) -> Self {
        let all = u32::from(lanes.connections);
        Self { to_open: 0..all, missing_count: all }
    }

    /// Returns the next connection to open; `None` if all have been requested.
    pub(crate) fn next(&mut self) -> Option<ConnectionId> {
        self.to_open.next().map(ConnectionId)
    }

    /// Records that a connection is open; returns whether all are open now.
    pub(crate) fn note_opened(&mut self) -> bool {
        self.missing_count = self.missing_count.saturating_sub(1);
        self.missing_count == 0
    }
}
