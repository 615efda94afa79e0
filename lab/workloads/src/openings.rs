//! The connections that a client opens before it does anything else.

use std::ops::Range;

use crate::{ConnectionId, Lanes};

/// One for each connection that the lanes have.
#[derive(Debug)]
pub(crate) struct Openings {
    to_open: Range<u32>,
    /// How many are not open yet.
    missing: u32,
}

impl Openings {
    pub(crate) fn of(lanes: Lanes) -> Self {
        let all = u32::from(lanes.connections);
        Self { to_open: 0..all, missing: all }
    }

    /// The next that is to be asked for.
    pub(crate) fn next(&mut self) -> Option<ConnectionId> {
        self.to_open.next().map(ConnectionId)
    }

    /// One is open: whether that was the last.
    pub(crate) fn opened(&mut self) -> bool {
        self.missing = self.missing.saturating_sub(1);
        self.missing == 0
    }
}
