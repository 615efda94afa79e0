//! Data over all paths at the same time: concurrent multipath transfer. Iyengar, Amer, Stewart, *Concurrent
//! Multipath Transfer Using SCTP Multihoming over Independent End-to-End Paths*, 2006;
//! draft-tuexen-tsvwg-sctp-multipath.
//!
//! Each path has its own window, as without multipath transfer. Chunks overtake each other on different paths, so a
//! SACK indicates a missing chunk only if one sent later on the same path has arrived (split fast retransmit, section
//! 4.1 of the paper). Each path has its own fast recovery. Any newly acknowledged chunk opens the window of its path,
//! whether or not the cumulative TSN advances (section 4.2). The receiver is unchanged, so it acknowledges every
//! packet while there are gaps (section 4.3, but without the bits that count packets in a SACK).

use hol_base::Time;
use hol_transport::PathStatus;
use hol_wire::sctp::Tsn;
use smallvec::SmallVec;

use crate::Endpoint;
use crate::send::Bundle;

impl Endpoint {
    /// Sends new data, each packet on the path that fills the smallest share of its window. No path is then idle
    /// even if the peer's receive window is the limit, and all paths fill the same share of their windows, so
    /// these can grow.
    pub(crate) fn send_new_over_all(&mut self, now: Time, bundle: &mut Bundle) {
        let limits: SmallVec<[u64; 4]> =
            (0..self.paths.list.len()).map(|path| self.burst_limited_cwnd(now, path)).collect();
        while let Some(path) = self.min_filled(&limits) {
            if !self.send_new_to(now, bundle, (path, limits[path]), 1) {
                return;
            }
        }
    }

    /// Returns the path with room that fills the smallest share of its window, among those that may carry new
    /// data.
    fn min_filled(&self, limits: &[u64]) -> Option<usize> {
        let filled = |path: &usize| {
            let (flight, limit) = (self.paths.list[*path].flight_size, limits[*path].max(1));
            u128::from(flight) * 1_000_000 / u128::from(limit)
        };
        let has_room = |path: &usize| self.paths.list[*path].flight_size < limits[*path];
        self.data_paths().filter(has_room).min_by_key(filled)
    }

    /// Returns the paths that may carry new data, the active one first.
    fn data_paths(&self) -> impl Iterator<Item = usize> {
        let (active, count) = (self.paths.active, self.paths.list.len());
        let in_turn = (0..count).map(move |step| (active + step) % count);
        in_turn.filter(move |index| {
            let path = &self.paths.list[*index];
            *index == active || (path.status == PathStatus::Active && path.may_carry_data())
        })
    }

    /// Returns the path that retransmissions take: with multipath transfer the one with the most room, otherwise
    /// the path of RFC 9260 section 6.4.1.
    pub(crate) fn retransmission_path(&self) -> usize {
        let room = |index: &usize| {
            let path = &self.paths.list[*index];
            path.cwnd().saturating_sub(path.flight_size)
        };
        let widest = if self.config.cmt { self.data_paths().max_by_key(room) } else { None };
        widest.unwrap_or(self.paths.retransmission)
    }

    /// Returns the path whose state says whether `path` is in fast recovery: with multipath transfer `path`
    /// itself, otherwise the first path, which stands for the whole association.
    pub(crate) fn recovery_path(&self, path: usize) -> usize {
        if self.config.cmt { path } else { 0 }
    }

    /// Returns the TSN that ends the fast recovery of `path`.
    pub(crate) fn fast_recovery(&self, path: usize) -> Option<Tsn> {
        self.paths.list[self.recovery_path(path)].fast_recovery
    }

    /// Returns the newest TSN whose acknowledgment indicates that a chunk on `path` is missing; `newest` is the
    /// newest TSN acknowledged on any path.
    pub(crate) fn newest_on(&self, path: usize, newest: Tsn) -> Option<Tsn> {
        if self.config.cmt { self.paths.list[path].newest_acked } else { Some(newest) }
    }
}
