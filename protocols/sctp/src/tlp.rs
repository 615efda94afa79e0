//! Tail loss probes: packets, sent before T3-rtx expires, whose SACKs show which chunks are missing. RFC 8985 section 7.

use hol_base::{Duration, Time};
use hol_wire::sctp::{Sack, Tsn};

use crate::Endpoint;
use crate::flight::{ChunkState, FastRetransmit};
use crate::rack::TimerPurpose;
use crate::send::Bundle;

/// Timeout of the probe timer before the round-trip time is known. RFC 8985 section 7.2.
const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum of the probe timeout, because a coarse clock may measure a round-trip time of zero.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

/// A tail loss probe that has not been acknowledged yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Highest TSN that had been sent when the probe was sent: TLP.end_seq.
    end_tsn: Tsn,
    /// TSN of the chunk that the probe repeats; `None` if the probe contains new data. TLP.is_retrans.
    repeats: Option<Tsn>,
}

impl Probe {
    /// Returns whether the probe repeats the chunk with this TSN.
    pub(crate) fn is_copy_of(&self, tsn: Tsn) -> bool {
        self.repeats == Some(tsn)
    }
}

impl Endpoint {
    /// Starts the probe timer of a path, or stops it if no probe is needed. `progress` says whether data were sent
    /// or the cumulative TSN has advanced; without progress, a running timer is not changed. RFC 8985 section 7.2.
    pub(crate) fn schedule_probe(&mut self, now: Time, path: usize, progress: bool) {
        let is_quiet = self.fast_recovery(path).is_none()
            && self.paths.list[path].rack.timed_out.is_none()
            && self.gap_acked_on(path) == 0
            && self.flight.lost() == 0
            && self.state.sends_data();
        let (mtu, sack_delay) = (self.config.mtu.0, self.config.sack_delay);
        let path = &mut self.paths.list[path];
        if path.rack.timer_purpose() == Some(TimerPurpose::Reordering) {
            return;
        }
        let waits_for_probe = path.rack.probe.is_some() || !path.rack.measured;
        if !is_quiet || path.error_count > 0 || waits_for_probe || !path.has_flight() {
            return path.rack.stop();
        }
        if path.rack.timer_purpose() == Some(TimerPurpose::Probe) && !progress {
            return;
        }
        // The peer may delay the SACK of a single packet.
        let delayed = if path.flight_size <= mtu { sack_delay } else { Duration::ZERO };
        let timeout = path.srtt().map_or(INITIAL_TIMEOUT, |srtt| (srtt * 2 + delayed).max(MIN_TIMEOUT));
        // If T3-rtx would expire first, the probe is sent instead.
        let at = path.t3_rtx.map_or(now + timeout, |t3_rtx| t3_rtx.min(now + timeout));
        path.rack.arm(at, TimerPurpose::Probe);
    }

    /// Sends a probe: new data if there are any, otherwise a copy of the last chunk. Restarts T3-rtx. RFC 8985
    /// section 7.3.
    pub(crate) fn send_probe(&mut self, now: Time, path: usize) {
        if !self.state.sends_data() || !self.may_send_data() {
            return;
        }
        let next = self.flight.next_tsn();
        let mut bundle = Bundle::new(path, self.headers);
        bundle.is_probe = true;
        self.send_new_to(now, &mut bundle, (path, u64::MAX), 1);
        let is_new = self.flight.next_tsn() != next;
        let repeats = if is_new { None } else { self.repeat_last(now, path, &mut bundle) };
        self.transmit(&mut bundle);
        if is_new || repeats.is_some() {
            self.statistics.tail_loss_probes += 1;
            self.paths.list[path].rack.probe = Some(Probe { end_tsn: self.flight.next_tsn() - 1, repeats });
            self.paths.list[path].rack.measured = false;
            self.paths.list[path].rack.stop();
            self.restart_t3(now, path);
        }
    }

    fn repeat_last(&mut self, now: Time, path: usize, bundle: &mut Bundle) -> Option<Tsn> {
        let is_last = |index: &usize| {
            let chunk = self.flight.get(*index);
            chunk.state == ChunkState::InFlight && chunk.path == path
        };
        let index = (0..self.flight.len()).rev().find(is_last)?;
        let chunk = self.flight.get(index);
        if self.partial_reliability && chunk.limit.is_reached(chunk.transmissions, now) {
            // The message must not be sent again, and nothing shows that it is lost.
            return None;
        }
        self.mark_lost(now, index);
        self.flight.get_mut(index).fast_retransmit = FastRetransmit::Marked;
        self.retransmit(now, bundle, index, false);
        Some(self.flight.get(index).data.tsn)
    }

    /// Ends the probe that a SACK acknowledges. If the probe has repaired a loss, reduces the window. RFC 8985
    /// section 7.4.
    pub(crate) fn on_probe_acknowledged(&mut self, path: usize, sack: &Sack) {
        let cumulative = self.flight.cumulative();
        let path = &mut self.paths.list[path];
        let Some(probe) = path.rack.probe else { return };
        let came_twice = sack.duplicates.iter().any(|tsn| probe.is_copy_of(*tsn));
        if came_twice || (probe.repeats.is_none() && cumulative.at_or_after(probe.end_tsn)) {
            path.rack.probe = None;
        } else if cumulative.after(probe.end_tsn) {
            // The peer reported no duplicate before it acknowledged newer data: the original was lost.
            path.rack.probe = None;
            path.window.on_fast_retransmit();
            self.statistics.congestion_events += 1;
        }
    }
}
