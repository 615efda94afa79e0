//! Processes SACKs and timeouts for the chunks in flight. RFC 9260 sections 6.2.1, 6.3.3 and 7.2.4.

use hol_base::Time;
use hol_transport::{Event, Failure, PathStatus, Violation};
use hol_wire::sctp::{Cause, Data, Sack, Tsn};

use crate::Endpoint;
use crate::flight::{ChunkState, FastRetransmit};
use crate::state::State;

impl Endpoint {
    /// Processes a SACK. RFC 9260 section 6.2.1.
    pub(crate) fn on_sack(&mut self, now: Time, sack: &Sack, from: usize) {
        if !self.state.is_established_or_shutting_down()
            || sack.cumulative_tsn.before(self.flight.cumulative())
        {
            return;
        }
        if sack.cumulative_tsn.at_or_after(self.flight.next_tsn()) {
            let violation =
                Cause::ProtocolViolation(bytes::Bytes::from_static(b"cumulative TSN not yet sent"));
            return self.abort(violation, Failure::Violation(Violation::AcknowledgedUnsent));
        }
        if self.config.sack_checks_limits_first {
            self.abandon_at_limits(now);
        }
        if self.config.cmt {
            self.paths.list.iter_mut().for_each(|path| path.newest_acked = None);
        }
        let advanced = sack.cumulative_tsn != self.flight.cumulative();
        self.acknowledge_through(now, sack.cumulative_tsn);
        let newest = self.acknowledge_gaps(now, sack);
        if !self.config.sack_checks_limits_first {
            self.abandon_expired(now);
        }
        self.update_paths(now, from, advanced);
        if self.config.rack {
            self.find_losses_by_time(now, sack, advanced);
        } else if let Some(last) = sack.gaps.last() {
            let highest = sack.cumulative_tsn + u32::from(last.end);
            self.count_missing(now, advanced.then_some(highest), newest);
        }
        if sack.a_rwnd == 0 && !advanced && self.state == State::Established {
            // Section 6.1 A: a peer that answers and keeps its window closed has not failed.
            self.error_count = 0;
            self.paths.list[from].error_count = 0;
        }
        self.peer_rwnd = u64::from(sack.a_rwnd).saturating_sub(self.flight.outstanding());
        self.queue_forward_tsn();
        self.offer_room();
    }

    /// Removes all chunks up to `cumulative` from the flight. RFC 9260 section 6.2.1 D.
    pub(crate) fn acknowledge_through(&mut self, now: Time, cumulative: Tsn) {
        while self.flight.cumulative().before(cumulative) {
            match self.flight.get(0).state {
                ChunkState::InFlight => self.acknowledge(now, 0),
                ChunkState::Lost => self.advance_rack(now, 0),
                ChunkState::GapAcked | ChunkState::Abandoned => {}
            }
            let Some(sent) = self.flight.pop() else { return };
            let Data { stream, flags, payload, .. } = &sent.data;
            self.streams_out.buffer.release(*stream, *flags, payload.len());
            // Rule R3 is about outstanding chunks, which are neither lost nor abandoned. Section 6.3.2.
            self.paths.list[sent.path].restarts_t3 |= sent.state == ChunkState::GapAcked;
        }
    }

    /// Processes the gap ack blocks of a SACK; returns the highest TSN that they newly acknowledge.
    fn acknowledge_gaps(&mut self, now: Time, sack: &Sack) -> Tsn {
        let mut newest = sack.cumulative_tsn;
        let (mut covered, mut ascends, mut reached) = (0, true, 0);
        for block in &sack.gaps {
            ascends &= block.start > reached;
            reached = block.end;
            let end = usize::from(block.end).min(self.flight.len());
            for index in usize::from(block.start).saturating_sub(1)..end {
                match self.flight.get(index).state {
                    ChunkState::Abandoned => continue,
                    ChunkState::GapAcked => {}
                    ChunkState::InFlight => {
                        self.acknowledge(now, index);
                        newest = newest.latest(self.flight.get(index).data.tsn);
                    }
                    ChunkState::Lost => {
                        self.advance_rack(now, index);
                        self.flight.set_state(index, ChunkState::GapAcked);
                        newest = newest.latest(self.flight.get(index).data.tsn);
                    }
                }
                covered += 1;
            }
        }
        // Chunks in overlapping blocks are counted twice, so the count alone may hide that some are missing.
        if covered < self.flight.gap_acked() || !ascends {
            self.take_back_reneged(sack);
        }
        newest
    }

    /// Processes the first acknowledgement of an outstanding chunk.
    fn acknowledge(&mut self, now: Time, index: usize) {
        self.advance_rack(now, index);
        let size = self.flight.set_state(index, ChunkState::GapAcked);
        let chunk = self.flight.get_mut(index);
        let path = &mut self.paths.list[chunk.path];
        if std::mem::take(&mut chunk.inherited) {
            path.inherited_flight_size -= size;
        } else {
            path.newly_acked += size;
        }
        // The acknowledgment of a retransmitted chunk may be for its first copy, which was perhaps sent on another
        // path.
        if chunk.transmissions == 1 {
            path.newest_acked = Some(chunk.data.tsn);
        }
        // Karn's algorithm: a retransmitted chunk provides no sample. Section 6.3.1 C5.
        if std::mem::take(&mut chunk.measures_rtt) {
            path.rtt_pending = false;
            let sent = chunk.data.stamp.sent;
            path.rtt.add_sample(self.clock.tick_of(now) - self.clock.tick_of(sent));
            path.rack.measured = true;
        }
    }

    /// Makes chunks outstanding again on which the peer has reneged. RFC 9260 sections 6.2.1 D iv, 6.3.2 R4.
    fn take_back_reneged(&mut self, sack: &Sack) {
        for index in 0..self.flight.len() {
            let offset = index + 1;
            let named = |block: &hol_wire::sctp::GapAckBlock| {
                (block.start.into()..=block.end.into()).contains(&offset)
            };
            if self.flight.get(index).state == ChunkState::GapAcked && !sack.gaps.iter().any(named) {
                let size = self.flight.set_state(index, ChunkState::InFlight);
                let path = &mut self.paths.list[self.flight.get(index).path];
                path.flight_size += size;
                path.restarts_t3 = true;
            }
        }
    }

    /// Updates error counts, congestion window and T3-rtx of each path after a SACK; `advanced` says whether the
    /// cumulative TSN advanced. RFC 9260 sections 6.3.2, 7.2 and 8.2.
    pub(crate) fn update_paths(&mut self, now: Time, from: usize, advanced: bool) {
        let cumulative = self.flight.cumulative();
        for path in &mut self.paths.list {
            if path.fast_recovery.is_some_and(|exit| exit.at_or_before(cumulative)) {
                path.fast_recovery = None;
                path.rack.on_recovery_end();
            }
            if path.rack.timed_out.take_if(|last| last.at_or_before(cumulative)).is_some() {
                path.rack.on_recovery_end();
            }
        }
        for index in 0..self.paths.list.len() {
            let recovering = self.fast_recovery(index).is_some();
            let grows = !(recovering && self.config.fast_recovery_holds_window)
                && (advanced || !self.config.growth_needs_cumulative_tsn);
            let path = &mut self.paths.list[index];
            let acked = std::mem::take(&mut path.newly_acked);
            let restart = std::mem::take(&mut path.restarts_t3);
            if acked > 0 {
                path.error_count = 0;
                self.error_count = 0;
                if grows {
                    path.window.on_acked(acked, path.flight_size, recovering);
                }
                path.flight_size -= acked;
            }
            if path.flight_size == 0 {
                path.window.on_flight_empty();
            }
            if !path.has_flight() {
                path.t3_rtx = None;
            } else if restart {
                self.restart_t3(now, index);
            }
            if acked > 0 {
                self.path_answered(index, index == from);
            }
        }
    }

    /// Handles an acknowledgement of DATA that was sent on a path; `directly` says whether it arrived on that
    /// path. RFC 7829 section 3.2.
    fn path_answered(&mut self, index: usize, directly: bool) {
        let revives = match self.paths.list[index].status {
            PathStatus::Active => false,
            PathStatus::PotentiallyFailed => !self.config.pf_until_heartbeat_ack,
            PathStatus::Inactive => directly,
        };
        if revives {
            self.set_path_status(index, PathStatus::Active);
        }
    }

    /// Counts a miss indication for each outstanding chunk below `newest`, the highest newly acknowledged TSN, and
    /// marks the chunks that have enough of them. In fast recovery, if the cumulative TSN has advanced, all chunks
    /// below `highest`, the highest TSN that the SACK acknowledges, get a miss indication. RFC 9260 section 7.2.4.
    fn count_missing(&mut self, now: Time, highest: Option<Tsn>, newest: Tsn) {
        let (mut index, last) = (0, highest.map_or(newest, |highest| highest.latest(newest)));
        while index < self.flight.len() {
            let chunk = self.flight.get(index);
            let (tsn, path) = (chunk.data.tsn, chunk.path);
            if tsn.at_or_after(last) {
                break;
            }
            let of_path = self.newest_on(path, newest);
            let all = highest.filter(|_| !self.config.cmt && self.fast_recovery(path).is_some());
            let Some(newest) = of_path.filter(|newest| tsn.before(all.unwrap_or(*newest))) else {
                index += 1;
                continue;
            };
            let chunk = self.flight.get_mut(index);
            let tells = chunk.transmissions == 1
                || !self.config.fast_retransmit_again
                || self.config.retransmissions_miss_at_once
                || newest.at_or_after(chunk.recover);
            let eligible =
                chunk.fast_retransmit == FastRetransmit::Eligible && chunk.state == ChunkState::InFlight;
            if eligible && tells {
                chunk.missing_reports += 1;
                if chunk.missing_reports >= self.config.missing_reports {
                    chunk.fast_retransmit = FastRetransmit::Marked;
                    self.start_fast_retransmit(now, index);
                }
            }
            index += 1;
        }
    }

    pub(crate) fn start_fast_retransmit(&mut self, now: Time, index: usize) {
        let chunk = self.flight.get(index);
        let (path, tsn, again) = (chunk.path, chunk.data.tsn, chunk.transmissions > 1);
        self.mark_lost(now, index);
        // One loss event reduces the window once: chunks that T3-rtx spared were lost together with those
        // that it marked. RFC 8985 section 9.3.
        let timed_out = self.paths.list[path].rack.timed_out;
        let of_timeout = !again && timed_out.is_some_and(|last| tsn.at_or_before(last));
        let begins = self.fast_recovery(path).is_none() && !of_timeout;
        self.fast_retransmit_due |= begins || (self.config.fast_retransmit_in_recovery && !self.config.rack);
        if begins {
            self.paths.list[path].rack.probe = None;
            let remembers = self.recovery_path(path);
            self.paths.list[remembers].fast_recovery = Some(self.flight.next_tsn() - 1);
            self.paths.list[path].window.on_fast_retransmit();
            self.statistics.congestion_events += 1;
        }
    }

    /// Marks a chunk in flight as lost, or abandons it if its message has reached its limit. RFC 9260 sections
    /// 6.2.1 C and 6.3.1 C5.
    pub(crate) fn mark_lost(&mut self, now: Time, index: usize) {
        let size = self.flight.set_state(index, ChunkState::Lost);
        let chunk = self.flight.get_mut(index);
        chunk.missing_reports = 0;
        let path = &mut self.paths.list[chunk.path];
        path.remove_in_flight(size, std::mem::take(&mut chunk.inherited));
        self.peer_rwnd += size;
        if std::mem::take(&mut chunk.measures_rtt) {
            path.rtt_pending = false;
        }
        self.abandon_if_due(now, index);
    }

    /// Marks all data in flight on `path` as lost.
    pub(crate) fn mark_path_lost(&mut self, now: Time, path: usize) {
        for index in 0..self.flight.len() {
            let chunk = self.flight.get(index);
            if chunk.state == ChunkState::InFlight && chunk.path == path {
                self.mark_lost(now, index);
            }
        }
    }

    /// Moves all data in flight on path `from` to path `to`. The moved chunks no longer measure the round-trip
    /// time.
    pub(crate) fn move_flight(&mut self, now: Time, from: usize, to: usize) {
        for index in 0..self.flight.len() {
            let chunk = self.flight.get_mut(index);
            if chunk.state == ChunkState::InFlight && chunk.path == from {
                self.paths.list[to].inherited_flight_size += chunk.size();
                (chunk.path, chunk.inherited, chunk.measures_rtt) = (to, true, false);
            }
        }
        let left = &mut self.paths.list[from];
        (left.flight_size, left.inherited_flight_size, left.rtt_pending) = (0, 0, false);
        if self.paths.list[to].inherited_flight_size > 0 {
            self.start_t3(now, to);
        }
    }

    /// Handles the expiry of T3-rtx. RFC 9260 section 6.3.3.
    pub(crate) fn on_t3_expired(&mut self, now: Time, path: usize) {
        if !self.state.is_established_or_shutting_down() {
            // T1-cookie retransmits the chunk that is bundled with COOKIE ECHO.
            return;
        }
        self.statistics.timeouts += 1;
        self.statistics.backoffs += u64::from(self.paths.list[path].error_count > 0);
        if self.error_count >= self.config.association_max_retrans {
            return self.on_association_max_retrans();
        }
        self.count_timeout(now, path);
        self.paths.list[path].window.on_timeout();
        self.paths.list[path].rack.stop();
        self.paths.list[path].rack.probe = None;
        self.statistics.congestion_events += 1;
        let remembers = self.recovery_path(path);
        self.paths.list[remembers].fast_recovery = None;
        self.fast_retransmit_due = false;
        self.paths.on_timeout(path);
        if self.config.rack {
            self.mark_timed_out(now, path);
        } else {
            self.mark_path_lost(now, path);
        }
        self.queue_forward_tsn();
        self.offer_room();
    }

    /// Ends the association, because Association.Max.Retrans is exceeded. RFC 9260 section 8.1.
    pub(crate) fn on_association_max_retrans(&mut self) {
        let cause = Cause::ProtocolViolation(bytes::Bytes::from_static(b"association max retrans exceeded"));
        self.abort(cause, Failure::MaxRetransmits);
    }

    /// Handles a timeout on `path`: backs off its RTO and counts errors of the path and the association. RFC 9260
    /// sections 6.3.3 E2 and 8.2, RFC 7829 section 3.2.
    pub(crate) fn count_timeout(&mut self, now: Time, path: usize) {
        self.error_count += 1;
        self.count_path_timeout(now, path);
    }

    /// Handles a timeout on `path` that does not count as an error of the association.
    pub(crate) fn count_path_timeout(&mut self, now: Time, path: usize) {
        self.count_path_error(now, path);
        self.paths.list[path].rtt.back_off();
    }

    /// Counts an error of a path. When the path becomes potentially failed, its first HEARTBEAT is sent after the
    /// RTO that it had before the back-off.
    fn count_path_error(&mut self, now: Time, path: usize) {
        let Self { config, paths, .. } = self;
        let struck = &mut paths.list[path];
        if struck.status == PathStatus::Inactive && struck.confirmed {
            return;
        }
        struck.error_count += 1;
        let errors = struck.error_count;
        if errors > config.path_max_retrans {
            if struck.status != PathStatus::Inactive {
                self.set_path_status(path, PathStatus::Inactive);
            }
        } else if struck.status == PathStatus::Active
            && errors > config.pf_threshold
            && errors < config.path_max_retrans
        {
            self.set_path_status(path, PathStatus::PotentiallyFailed);
            self.schedule_heartbeat(now, path);
        }
    }

    pub(crate) fn set_path_status(&mut self, path: usize, status: PathStatus) {
        let changed = &mut self.paths.list[path];
        if changed.status == status {
            return;
        }
        changed.status = status;
        changed.confirmed |= status == PathStatus::Active;
        let address = changed.address;
        self.paths.select();
        self.push_event(Event::Path { address, status });
    }

    /// Tells a blocked application that the send buffer has room again.
    pub(crate) fn offer_room(&mut self) {
        if self.state.takes_messages() && self.streams_out.buffer.has_room_again() {
            self.push_event(Event::Writable);
        }
    }
}
