//! How much reordering the path is believed to do. RFC 6675 section 2 (DupThresh), RFC 8985 section 6.2 (RACK.reordering_seen).

/// Reordering is believed in up to this many segments.
const MOST: u32 = 300;

/// DupThresh, which grows when the path reorders.
#[derive(Debug, Clone)]
pub(crate) struct Reordering {
    dupthresh: u32,
    seen: bool,
}

impl Reordering {
    /// None was seen.
    pub(crate) fn new(dupthresh: u32) -> Self {
        Self { dupthresh, seen: false }
    }

    /// Segments above a hole that prove it a loss.
    pub(crate) fn dupthresh(&self) -> u32 {
        self.dupthresh
    }

    /// The path has reordered.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen
    }

    /// An original came late, nobody knows how far.
    pub(crate) fn see(&mut self) {
        self.seen = true;
    }

    /// Data that was never retransmitted arrived behind what was sent up to `distance` segments later.
    pub(crate) fn see_distance(&mut self, distance: u32) {
        self.dupthresh = self.dupthresh.max(distance.min(MOST));
        self.seen = true;
    }

    /// A timeout although many segments had arrived: waiting for more of them was wrong.
    pub(crate) fn doubt(&mut self, dupthresh: u32) {
        self.dupthresh = self.dupthresh.min(dupthresh);
    }
}
