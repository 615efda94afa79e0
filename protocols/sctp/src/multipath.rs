//! Data over all paths at the same time: concurrent multipath transfer. Iyengar, Amer, Stewart, *Concurrent Multipath Transfer
//! Using SCTP Multihoming over Independent End-to-End Paths*, 2006; draft-tuexen-tsvwg-sctp-multipath.
//!
//! Each path has its window, as always. What arrives overtakes: a SACK tells that a chunk is missing
//! only if something later on the same path has come (split fast retransmit, section 4.1 of the paper); each path recovers for itself; and
//! any chunk that is acknowledged for the first time opens the window of its path, the cumulative TSN has moved or not (section 4.2). A
//! receiver does nothing else than before, so that it answers every packet while there are gaps (section 4.3, without the bits).

use hol_base::Time;
use hol_transport::PathStatus;
use hol_wire::sctp::Tsn;
use smallvec::SmallVec;

use crate::Endpoint;
use crate::send::Bundle;

impl Endpoint {
    /// New data, packet by packet to the path whose window is filled least: so none is left idle where it is the peer's window that
    /// limits, and a path that is full for what it is given opens its window.
    pub(crate) fn send_new_over_all(&mut self, now: Time, bundle: &mut Bundle) {
        let limits: SmallVec<[u64; 4]> =
            (0..self.paths.list.len()).map(|path| self.burst_limited_cwnd(now, path)).collect();
        while let Some(path) = self.least_filled(&limits) {
            if !self.send_new_to(now, bundle, (path, limits[path]), 1) {
                return;
            }
        }
    }

    /// Of the paths that new data may take, the first of those that are filled least and have room.
    fn least_filled(&self, limits: &[u64]) -> Option<usize> {
        let filled = |path: &usize| {
            let (flight, limit) = (self.paths.list[*path].flight_size, limits[*path].max(1));
            u128::from(flight) * 1_000_000 / u128::from(limit)
        };
        let has_room = |path: &usize| self.paths.list[*path].flight_size < limits[*path];
        self.data_paths().filter(has_room).min_by_key(filled)
    }

    /// The paths that new data may take, the active one first.
    fn data_paths(&self) -> impl Iterator<Item = usize> {
        let (active, count) = (self.paths.active, self.paths.list.len());
        let in_turn = (0..count).map(move |step| (active + step) % count);
        in_turn.filter(move |index| {
            let path = &self.paths.list[*index];
            *index == active || (path.status == PathStatus::Active && path.may_carry_data())
        })
    }

    /// Where what is lost goes: of all paths the one with the most room, else RFC 9260's choice, section 6.4.1.
    pub(crate) fn retransmission_path(&self) -> usize {
        let room = |index: &usize| {
            let path = &self.paths.list[*index];
            path.cwnd().saturating_sub(path.flight_size)
        };
        let widest = if self.config.cmt { self.data_paths().max_by_key(room) } else { None };
        widest.unwrap_or(self.paths.retransmission)
    }

    /// The path that remembers whether `path` is in fast recovery: itself, or the first for the whole association.
    pub(crate) fn recovers_with(&self, path: usize) -> usize {
        if self.config.cmt { path } else { 0 }
    }

    /// Fast recovery of `path` ends with this TSN.
    pub(crate) fn fast_recovery(&self, path: usize) -> Option<Tsn> {
        self.paths.list[self.recovers_with(path)].fast_recovery
    }

    /// The newest TSN whose acknowledgment tells that a chunk on `path` is missing, where `newest` is that of all paths.
    pub(crate) fn newest_on(&self, path: usize, newest: Tsn) -> Option<Tsn> {
        if self.config.cmt { self.paths.list[path].newest_acked } else { Some(newest) }
    }
}
