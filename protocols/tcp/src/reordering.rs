//! The estimated degree of reordering on the path. RFC 6675 section 2 (DupThresh), RFC 8985 section 6.2 (RACK.reordering_seen).

/// Maximum of the estimated degree of reordering, in segments.
const MAX_REORDERING: u32 = 300;

/// The estimate of DupThresh, which grows when the path reorders segments.
#[derive(Debug, Clone)]
pub(crate) struct Reordering {
    dupthresh: u32,
    /// Whether the path has reordered segments: RACK.reordering_seen.
    seen: bool,
}

impl Reordering {
    /// Creates the estimate for a path that has not reordered any segments.
    pub(crate) fn new(dupthresh: u32) -> Self {
        Self { dupthresh, seen: false }
    }

    /// Returns DupThresh: the number of segments delivered above a hole that indicates a loss.
    pub(crate) fn dupthresh(&self) -> u32 {
        self.dupthresh
    }

    /// Returns whether the path has reordered segments.
    pub(crate) fn has_reordered(&self) -> bool {
        self.seen
    }

    /// Records that a segment was delivered out of order, by an unknown distance.
    pub(crate) fn note_reordering(&mut self) {
        self.seen = true;
    }

    /// Records reordering: a segment that was never retransmitted was delivered after segments that were sent up
    /// to `distance` segments later.
    pub(crate) fn note_distance(&mut self, distance: u32) {
        self.dupthresh = self.dupthresh.max(distance.min(MAX_REORDERING));
        self.seen = true;
    }

    /// Resets DupThresh to `dupthresh`, because a timeout occurred although many segments had been delivered.
    pub(crate) fn reset(&mut self, dupthresh: u32) {
        self.dupthresh = self.dupthresh.min(dupthresh);
    }
}
