//! The estimated degree of reordering on the path. RFC 6675 section 2 (DupThresh), RFC 8985 section 6.2 (RACK.reordering_seen).

/// The largest degree of reordering, in segments.
const MAX_REORDERING: u32 = 300;

/// DupThresh, which grows when the path reorders.
#[derive(Debug, Clone)]
pub(crate) struct Reordering {
    dupthresh: u32,
    /// Whether the path has reordered segments: RACK.reordering_seen.
    seen: bool,
}

impl Reordering {
    /// Creates the estimate of a path without reordering.
    pub(crate) fn new(dupthresh: u32) -> Self {
        Self { dupthresh, seen: false }
    }

    /// Returns the number of segments above a hole that indicates a loss.
    pub(crate) fn dupthresh(&self) -> u32 {
        self.dupthresh
    }

    /// Returns whether the path has reordered.
    pub(crate) fn has_reordered(&self) -> bool {
        self.seen
    }

    /// Notes that a segment was delivered late by an unknown distance.
    pub(crate) fn note_reordering(&mut self) {
        self.seen = true;
    }

    /// Notes that a segment which was never retransmitted was delivered after segments sent up to `distance` segments
    /// later.
    pub(crate) fn note_distance(&mut self, distance: u32) {
        self.dupthresh = self.dupthresh.max(distance.min(MAX_REORDERING));
        self.seen = true;
    }

    /// Resets DupThresh, because a timeout occurred although many segments had been delivered.
    pub(crate) fn reset(&mut self, dupthresh: u32) {
        self.dupthresh = self.dupthresh.min(dupthresh);
    }
}
