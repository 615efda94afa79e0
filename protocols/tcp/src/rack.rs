//! RACK: a segment is lost if a segment sent sufficiently later has been delivered. RFC 8985 section 6.

use hol_base::{Duration, Time};
use hol_wire::tcp::SeqNum;

use crate::Endpoint;
use crate::ack_info::AckInfo;
use crate::recovery_phase::Phase;
use crate::scoreboard::SentSegment;
use crate::timers::TimerPurpose;

/// Number of recoveries after which a widened reordering window is reset. RFC 8985 section 6.2, step 4.
const PERSISTENT_RECOVERIES: u32 = 16;

/// The state of RACK: the latest delivery, and the reordering window.
#[derive(Debug, Clone)]
pub(crate) struct Rack {
    /// When the segment was sent that was sent last among the delivered ones: RACK.xmit_ts.
    sent: Time,
    /// The end of the segment that was sent last among the delivered ones: RACK.end_seq.
    end: SeqNum,
    /// The round-trip time of the latest delivery: RACK.rtt.
    rtt: Duration,
    /// Whether segments were delivered since the last search for losses.
    advanced: bool,
    /// The reordering window in quarters of the minimum round-trip time: RACK.reo_wnd_mult.
    window_steps: u32,
    persist: u32,
    /// Whether a D-SACK arrived that reordering can explain.
    dsack_seen: bool,
    /// The sequence number after whose acknowledgment the reordering window may be widened again.
    widened_until: SeqNum,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            sent: Time::ZERO,
            end: SeqNum::default(),
            rtt: Duration::ZERO,
            advanced: false,
            window_steps: 1,
            persist: 0,
            dsack_seen: false,
            widened_until: SeqNum::default(),
        }
    }
}

impl Rack {
    /// Returns the round-trip time of the latest delivery: RACK.rtt.
    pub(crate) fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Records a D-SACK that reordering can explain.
    pub(crate) fn on_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// Makes the next acknowledgment repeat the search for losses, because segments are no longer marked as lost.
    pub(crate) fn search_again(&mut self) {
        self.advanced = true;
    }

    /// Counts a recovery that was not undone, for the reset of a widened reordering window.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// Handles the undo of a recovery, which then does not count for the reset of a widened reordering window.
    pub(crate) fn on_undone(&mut self) {
        self.persist = (self.persist + 1).min(PERSISTENT_RECOVERIES);
    }
}

impl Endpoint {
    /// Updates the state for a delivered segment. RFC 8985 section 6.2, steps 1 and 2.
    pub(crate) fn advance_rack(&mut self, now: Time, segment: &SentSegment) {
        let rtt = now.since(segment.sent);
        let ambiguous = segment.ever_resent && self.rtt.min().is_some_and(|min| rtt < min);
        if ambiguous {
            return;
        }
        let rack = &mut self.episode.rack;
        rack.advanced = true;
        rack.rtt = rtt;
        let later = segment.sent > rack.sent || (segment.sent == rack.sent && segment.end().after(rack.end));
        if later {
            rack.sent = segment.sent;
            rack.end = segment.end();
        }
    }

    /// Returns the reordering window: RACK.reo_wnd. RFC 8985 section 6.2, step 4.
    fn reordering_window(&self) -> Duration {
        let episode = &self.episode;
        let enough = self.board.sacked().segments >= episode.reordering.dupthresh();
        if !episode.reordering.has_reordered() && (episode.phase() >= Phase::Recovery || enough) {
            return Duration::ZERO;
        }
        let quarter = self.rtt.min().unwrap_or_default() / 4;
        (quarter * u64::from(episode.rack.window_steps)).min(self.rtt.srtt().unwrap_or_default())
    }

    /// Marks lost segments. Returns the time until further segments will count as lost; `None` if there are no
    /// candidates. RFC 8985 section 6.2, step 5.
    fn detect_losses(&mut self, now: Time) -> Option<Duration> {
        let window = self.reordering_window();
        let (sent, end) = (self.episode.rack.sent, self.episode.rack.end);
        let patience = self.episode.rack.rtt + window;
        let mut wait = None;
        for index in 0..self.board.len() {
            let segment = self.board.get(index);
            let before = segment.sent_before(sent, end);
            if !before && !segment.ever_resent {
                // Later segments were not sent early enough, either.
                break;
            }
            // A copy that RACK marked waits for a timeout even if the mark was undone. Linux: tcp_rack_detect_loss.
            let settled = segment.sacked || segment.marked_by_rack || (segment.lost && !segment.resent);
            if settled || !before || (segment.follows_new && self.has_undelivered_new(sent, end)) {
                continue;
            }
            let remaining = patience.saturating_sub(now.saturating_since(segment.sent));
            if remaining.is_zero() {
                self.board.mark_lost_by_rack(index);
            } else {
                wait = wait.max(Some(remaining));
            }
        }
        wait
    }

    /// Returns whether data are undelivered that were sent at `sent` and end after `end`. Linux
    /// searches segments in the order in which they were sent, and stops its search at such data.
    fn has_undelivered_new(&self, sent: Time, end: SeqNum) -> bool {
        let mut all = (0..self.board.len()).map(|index| self.board.get(index));
        all.any(|segment| !segment.sacked && segment.sent == sent && segment.end().after(end))
    }

    /// Searches for losses after a delivery. Returns whether the reordering timer now runs.
    pub(crate) fn find_losses_by_time(&mut self, now: Time) -> bool {
        if !std::mem::take(&mut self.episode.rack.advanced) {
            return false;
        }
        let wait = self.detect_losses(now);
        if let Some(wait) = wait {
            self.timers.arm(now, TimerPurpose::Reordering, wait + self.config.timer_slack);
        }
        wait.is_some()
    }

    /// Handles the expiry of the reordering timer: segments that are still missing are lost.
    pub(crate) fn on_reordering_timeout(&mut self, now: Time) {
        let lost = self.board.losses();
        self.detect_losses(now);
        let newly_lost = self.board.losses() - lost;
        if newly_lost > 0 {
            if self.episode.phase() != Phase::Recovery {
                self.enter_recovery();
                if !self.cwnd.is_rate_based() {
                    self.reduce_window(self.cwnd.quantum(), newly_lost, false);
                }
            }
            self.retransmit_lost(now);
        }
        if !self.timers.is_armed_for(TimerPurpose::Retransmission) {
            self.rearm_since_oldest(now);
        }
    }

    /// Restarts the retransmission timer, whose time counts from the transmission of the oldest segment.
    fn rearm_since_oldest(&mut self, now: Time) {
        let Some(oldest) = self.board.front() else { return };
        let waited = now.saturating_since(oldest.sent);
        let rto = self.rtt.rto().saturating_sub(waited).max(Duration::from_micros(1));
        self.timers.arm(now, TimerPurpose::Retransmission, rto);
    }

    /// Widens the reordering window after a D-SACK on a path that reorders, at most once per round trip. RFC 8985
    /// section 6.2, step 4.
    pub(crate) fn widen_reordering_window(&mut self, info: &AckInfo) {
        if !info.acknowledges_data() && !info.data_sacked {
            return;
        }
        let (una, nxt) = (self.snd.una(), self.snd.nxt());
        let rack = &mut self.episode.rack;
        if !std::mem::take(&mut rack.dsack_seen) {
            if rack.persist == 0 {
                rack.window_steps = 1;
            }
        } else if una.at_or_after(rack.widened_until) {
            rack.window_steps = (rack.window_steps + 1).min(255);
            rack.widened_until = nxt;
            rack.persist = PERSISTENT_RECOVERIES;
        }
    }
}
