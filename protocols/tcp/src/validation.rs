//! Whether the congestion window is used: if not, it neither grows nor stays. RFC 2861, RFC 7661.

use hol_base::{Duration, Time};
use hol_wire::tcp::SeqNum;

use crate::Endpoint;
use crate::phase::Phase;

/// How much of the window was used lately.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// The window, and nothing else, held data back in this round.
    limited: bool,
    /// The most that was outstanding in this round, in units of the window.
    most_out: u32,
    /// The round ends when this is acknowledged.
    round_end: SeqNum,
    /// The most that was outstanding since the window was last full.
    used: u32,
    /// When the window was last full, or changed.
    stamp: Time,
    /// When data was sent last.
    last_sent: Time,
    /// When anything was sent last.
    last_departure: Time,
    /// Octets a second that the window allows, as the last acknowledgment left it; 0 before the first.
    rate: u64,
}

impl Usage {
    /// A connection begins at `una`.
    pub(crate) fn begin(una: SeqNum, now: Time) -> Self {
        Self { round_end: una, stamp: now, last_sent: now, ..Self::default() }
    }

    /// Data was sent, new or again.
    pub(crate) fn on_data_sent(&mut self, now: Time) {
        self.last_sent = now;
    }

    /// A segment leaves, with or without data.
    pub(crate) fn on_departure(&mut self, now: Time) {
        self.last_departure = now;
    }

    /// Octets a second that the window allows, without a bound before that is known.
    pub(crate) fn rate(&self) -> u64 {
        if self.rate == 0 { u64::MAX } else { self.rate }
    }

    /// The window allows so many octets a second.
    pub(crate) fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// When a segment left last.
    pub(crate) fn last_departure(&self) -> Time {
        self.last_departure
    }

    /// The window has changed.
    pub(crate) fn on_window_changed(&mut self, now: Time) {
        self.stamp = now;
    }

    /// How long nothing was sent.
    pub(crate) fn idle(&self, now: Time) -> Duration {
        now.saturating_since(self.last_sent)
    }
}

impl Endpoint {
    /// What counts against the window.
    pub(crate) fn in_flight(&self) -> u32 {
        let unit = self.config.congestion_unit;
        let in_flight = self.board.in_flight(unit);
        if self.config.limited_transmit || self.episode.phase() >= Phase::Recovery {
            return in_flight;
        }
        // Without RFC 3042 the first duplicate acknowledgments let nothing out.
        in_flight + self.board.sacked().count(unit)
    }

    /// The window is in use, so acknowledgments may open it.
    pub(crate) fn window_is_used(&self) -> bool {
        !self.config.cwnd_validation
            || self.usage.limited
            || (self.cwnd.in_slow_start() && self.cwnd.cwnd() < 2 * self.usage.most_out)
    }

    /// The acknowledgment of a time at which `in_flight` was out may open the window. Linux 2.6.16: net/ipv4/tcp_cong.c
    /// tcp_is_cwnd_limited, which has the first rule where the interface cuts no blocks.
    pub(crate) fn window_was_used(&self, in_flight: u32) -> bool {
        if self.config.grows_when_full { in_flight >= self.cwnd.cwnd() } else { self.window_is_used() }
    }

    /// Data was sent, or the window kept it back (`limited`).
    pub(crate) fn validate_window(&mut self, now: Time, limited: bool) {
        if !self.config.cwnd_validation {
            return;
        }
        let out = self.board.out().count(self.config.congestion_unit);
        let usage = &mut self.usage;
        let new_round = self.snd.una().at_or_after(usage.round_end);
        if new_round || limited || (!usage.limited && out > usage.most_out) {
            usage.limited = limited;
            usage.most_out = out;
            usage.round_end = self.snd.nxt();
        }
        if self.window_was_used(out) {
            self.usage.used = 0;
            self.usage.stamp = now;
            return;
        }
        self.usage.used = self.usage.used.max(out);
        if self.config.slow_start_after_idle && now.saturating_since(self.usage.stamp) >= self.rtt.rto() {
            self.shrink_unused_window(now);
        }
    }

    /// The window was not full for an RTO: it goes half of the way down to what was used. RFC 2861 section 3.
    fn shrink_unused_window(&mut self, now: Time) {
        if self.episode.phase() == Phase::Open && !self.cwnd.is_rate_based() {
            let used = self.usage.used.max(self.config.initial_window * self.cwnd.quantum());
            if used < self.cwnd.cwnd() {
                self.remember_ssthresh();
                self.cwnd.set_cwnd(self.cwnd.cwnd().midpoint(used));
            }
            self.usage.used = 0;
        }
        self.usage.stamp = now;
    }

    /// Data is about to be sent after a pause: the window halves for each RTO of silence, down to the restart
    /// window. RFC 2861 section 3, RFC 5681 section 4.1.
    pub(crate) fn restart_after_idle(&mut self, now: Time) {
        let mut idle = self.usage.idle(now);
        let rto = self.rtt.rto();
        let keeps = !self.config.slow_start_after_idle || self.cwnd.is_rate_based();
        if keeps || self.board.len() > 0 || idle <= rto {
            return;
        }
        self.remember_ssthresh();
        let cwnd = self.cwnd.cwnd();
        let restart = (self.config.initial_window * self.cwnd.quantum()).min(cwnd);
        let mut window = cwnd;
        while idle > rto && window > restart {
            window /= 2;
            idle -= rto;
        }
        self.cwnd.set_cwnd(window.max(restart));
        self.usage.stamp = now;
        self.usage.used = 0;
    }

    fn remember_ssthresh(&mut self) {
        if !self.episode.phase().is_reducing() {
            self.cwnd.set_ssthresh(self.cwnd.remembered_ssthresh());
        }
    }
}
