//! RACK: a chunk is lost if a chunk sent sufficiently later on the same path has been delivered. RFC 8985 section 6.
//!
//! TSNs replace sequence numbers, and the duplicate TSNs of a SACK replace D-SACK. Miss indications are not
//! counted: the reordering window replaces them, on paths with and without reordering.

use hol_base::{Duration, Time};
use hol_wire::sctp::{Sack, Tsn};

use crate::Endpoint;
use crate::flight::{ChunkState, FastRetransmit, SentChunk};
use crate::tlp::Probe;

/// Number of loss recoveries after which a widened reordering window is reset. RFC 8985 section 6.2, step 4.
const PERSISTENT_RECOVERIES: u32 = 16;

/// What to do when the timer of RACK-TLP expires. There is only one such timer. RFC 8985 section 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerPurpose {
    /// Mark the chunks as lost that have not been acknowledged.
    Reordering,
    /// Send a tail loss probe.
    Probe,
}

/// The state of RACK-TLP on a path.
#[derive(Debug, Clone)]
pub(crate) struct Rack {
    /// Sending time and TSN of the chunk that was sent last among the delivered ones: RACK.xmit_ts and
    /// RACK.end_seq.
    newest: Option<(Time, Tsn)>,
    /// RACK.fack: the highest TSN that was delivered.
    highest: Option<Tsn>,
    /// Round-trip time of the chunk that was sent last among those that the latest SACK acknowledges: RACK.rtt.
    rtt: Duration,
    /// The time at which the chunk was sent whose round-trip time is `rtt`.
    rtt_of: Time,
    /// RACK.min_RTT: the minimum round-trip time since the path came into use.
    min_rtt: Option<Duration>,
    /// Whether a chunk was delivered since the last search for losses.
    advanced: bool,
    reordering_seen: bool,
    /// The reordering window in quarters of the minimum round-trip time: RACK.reo_wnd_mult.
    window_steps: u32,
    /// Number of loss recoveries until a widened reordering window is reset: RACK.reo_wnd_persist.
    persist: u32,
    /// The TSN after whose acknowledgment the reordering window may be widened again: RACK.dsack_round.
    widened_until: Option<Tsn>,
    /// The last TSN that was sent before T3-rtx expired. RTO recovery lasts until it is acknowledged.
    pub(crate) timed_out: Option<Tsn>,
    pub(crate) probe: Option<Probe>,
    /// Whether the round-trip time was measured since the last probe. On a path that has become slower, a further
    /// probe without a new measurement would be sent too early. RFC 8985 section 7.3.
    pub(crate) measured: bool,
    timer: Option<(Time, TimerPurpose)>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: None,
            highest: None,
            rtt: Duration::ZERO,
            rtt_of: Time::ZERO,
            min_rtt: None,
            advanced: false,
            reordering_seen: false,
            window_steps: 1,
            persist: 0,
            widened_until: None,
            timed_out: None,
            probe: None,
            measured: true,
            timer: None,
        }
    }
}

impl Rack {
    /// Updates the state for a delivered chunk. RFC 8985 section 6.2, steps 1 to 3.
    pub(crate) fn deliver(&mut self, now: Time, chunk: &SentChunk) {
        let (tsn, sent, again) = (chunk.data.tsn, chunk.data.stamp.sent, chunk.transmissions > 1);
        let rtt = now.saturating_since(sent);
        if again && self.min_rtt.is_none_or(|min| rtt < min) {
            // The acknowledgment may be for an earlier copy of the chunk.
            return;
        }
        if !again {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        if !self.advanced || sent >= self.rtt_of {
            (self.rtt, self.rtt_of, self.advanced) = (rtt, sent, true);
        }
        if self.newest.is_none_or(|newest| is_later((sent, tsn), newest)) {
            self.newest = Some((sent, tsn));
        }
        match self.highest {
            Some(highest) if tsn.before(highest) => self.reordering_seen |= !again,
            _ => self.highest = Some(tsn),
        }
    }

    /// Counts the end of a fast or RTO recovery. The 16th since the reordering window was last widened resets the
    /// window. RFC 8985 section 6.2, step 4.
    pub(crate) fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.window_steps = 1;
        }
    }

    /// Widens the reordering window if the peer received a chunk twice, at most once per round trip. RFC 8985
    /// section 6.2, step 4.
    fn widen(&mut self, has_duplicates: bool, cumulative: Tsn, next: Tsn) {
        self.widened_until = self.widened_until.filter(|until| (cumulative + 1).before(*until));
        if has_duplicates && self.widened_until.is_none() {
            self.widened_until = Some(next);
            self.window_steps += 1;
            self.persist = PERSISTENT_RECOVERIES;
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.timer.map(|(at, _)| at)
    }

    pub(crate) fn arm(&mut self, at: Time, purpose: TimerPurpose) {
        self.timer = Some((at, purpose));
    }

    /// Returns what the timer of RACK-TLP waits for; `None` if it does not run.
    pub(crate) fn timer_purpose(&self) -> Option<TimerPurpose> {
        self.timer.map(|(_, purpose)| purpose)
    }

    pub(crate) fn stop(&mut self) {
        self.timer = None;
    }

    /// Stops the timer of RACK-TLP if it has expired, and returns its purpose.
    pub(crate) fn expire(&mut self, now: Time) -> Option<TimerPurpose> {
        self.timer.take_if(|(at, _)| *at <= now).map(|(_, purpose)| purpose)
    }
}

/// Returns whether the first chunk was sent later than the other; of chunks sent at the same time, the one with
/// the higher TSN is later: RACK_sent_after.
fn is_later((sent, tsn): (Time, Tsn), (other_sent, other_tsn): (Time, Tsn)) -> bool {
    sent > other_sent || (sent == other_sent && tsn.after(other_tsn))
}

impl Endpoint {
    /// Updates the state of RACK for a delivered chunk.
    pub(crate) fn advance_rack(&mut self, now: Time, index: usize) {
        if self.config.rack {
            let chunk = self.flight.get(index);
            self.paths.list[chunk.path].rack.deliver(now, chunk);
        }
    }

    /// Searches for losses after a SACK, and processes the acknowledgement of a probe. `advanced` says whether the
    /// cumulative TSN advanced. RFC 8985 sections 6.2 and 7.4.
    pub(crate) fn find_losses_by_time(&mut self, now: Time, sack: &Sack, advanced: bool) {
        let (cumulative, next) = (self.flight.cumulative(), self.flight.next_tsn());
        let probes = || self.paths.list.iter().filter_map(|path| path.rack.probe);
        let is_of_probe = |tsn: &Tsn| probes().any(|probe| probe.is_copy_of(*tsn));
        let has_duplicates = !sack.duplicates.iter().all(is_of_probe);
        for path in 0..self.paths.list.len() {
            let rack = &mut self.paths.list[path].rack;
            rack.widen(has_duplicates, cumulative, next);
            self.on_probe_acknowledged(path, sack);
            if std::mem::take(&mut self.paths.list[path].rack.advanced) {
                self.detect_losses(now, path);
            }
            self.schedule_probe(now, path, advanced);
        }
    }

    /// Returns the number of chunks that are acknowledged by gap ack blocks; with multipath transfer, only of
    /// those sent on `path`.
    pub(crate) fn gap_acked_on(&self, path: usize) -> usize {
        if !self.config.cmt || self.flight.gap_acked() == 0 {
            return self.flight.gap_acked();
        }
        // With paths of different delay there are always gaps.
        let chunks = (0..self.flight.len()).map(|index| self.flight.get(index));
        chunks.filter(|chunk| chunk.state == ChunkState::GapAcked && chunk.path == path).count()
    }

    /// Marks chunks as lost after T3-rtx of a path has expired: the first chunk of the path, and those that were
    /// not sent within the last round trip. RFC 8985 section 6.3.
    pub(crate) fn mark_timed_out(&mut self, now: Time, path: usize) {
        let patience = self.paths.list[path].rack.rtt + self.reordering_window(path);
        let mut is_first = true;
        for index in 0..self.flight.len() {
            let chunk = self.flight.get(index);
            if chunk.path != path || !matches!(chunk.state, ChunkState::InFlight | ChunkState::Lost) {
                continue;
            }
            let is_oldest = std::mem::take(&mut is_first);
            if chunk.state == ChunkState::Lost {
                continue;
            }
            if is_oldest || now.saturating_since(chunk.data.stamp.sent) >= patience {
                self.mark_lost(now, index);
            }
        }
        if self.paths.list[path].has_flight() {
            self.start_t3(now, path);
        }
        self.paths.list[path].rack.timed_out = Some(self.flight.next_tsn() - 1);
    }

    /// Returns the reordering window: RACK.reo_wnd. RFC 8985 section 6.2, step 4.
    fn reordering_window(&self, path: usize) -> Duration {
        let rack = &self.paths.list[path].rack;
        let enough = self.gap_acked_on(path) >= self.config.missing_reports as usize;
        let recovers = self.fast_recovery(path).is_some() || rack.timed_out.is_some();
        if !rack.reordering_seen && (recovers || enough) {
            return Duration::ZERO;
        }
        let srtt = self.paths.list[path].srtt().filter(|srtt| !srtt.is_zero());
        let quarter = rack.min_rtt.unwrap_or_default() / 4;
        (quarter * u64::from(rack.window_steps)).min(srtt.unwrap_or(rack.rtt))
    }

    /// Marks the lost chunks of a path, and starts the reordering timer if other chunks may be lost. RFC 8985 section
    /// 6.2, step 5.
    fn detect_losses(&mut self, now: Time, path: usize) {
        let rack = &self.paths.list[path].rack;
        let Some(newest) = rack.newest else { return };
        let patience = rack.rtt + self.reordering_window(path);
        let mut wait = None;
        for index in 0..self.flight.len() {
            let chunk = self.flight.get(index);
            if chunk.path != path || chunk.state != ChunkState::InFlight {
                continue;
            }
            let sent = chunk.data.stamp.sent;
            if !is_later(newest, (sent, chunk.data.tsn)) {
                if chunk.transmissions == 1 {
                    // Chunks with higher TSNs were not sent earlier, either.
                    break;
                }
                continue;
            }
            let remaining = patience.saturating_sub(now.saturating_since(sent));
            if remaining.is_zero() {
                self.flight.get_mut(index).fast_retransmit = FastRetransmit::Marked;
                self.start_fast_retransmit(now, index);
            } else {
                wait = wait.max(Some(remaining));
            }
        }
        let rack = &mut self.paths.list[path].rack;
        match wait {
            Some(wait) => rack.arm(now + wait, TimerPurpose::Reordering),
            None if rack.timer_purpose() == Some(TimerPurpose::Reordering) => rack.stop(),
            None => {}
        }
    }

    /// Handles an expiry of the timer of RACK-TLP. RFC 8985 section 8.
    pub(crate) fn on_rack_timer(&mut self, now: Time, path: usize, purpose: TimerPurpose) {
        match purpose {
            TimerPurpose::Reordering => {
                self.detect_losses(now, path);
                self.flush(now, false);
                self.schedule_probe(now, path, true);
            }
            TimerPurpose::Probe => self.send_probe(now, path),
        }
    }
}
