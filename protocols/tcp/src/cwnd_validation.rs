//! Congestion window validation: an unused window is not increased, and is reduced after a while. RFC 2861, RFC 7661.

use hol_base::{Duration, Time};
use hol_wire::tcp::SeqNum;

use crate::Endpoint;
use crate::recovery_phase::Phase;

/// How much of the congestion window the sender has recently used.
#[derive(Debug, Default)]
pub(crate) struct WindowUsage {
    /// Whether, in this round, only the congestion window limited the sender.
    is_window_limited: bool,
    /// Maximum amount of data outstanding in this round, in units of the congestion window.
    max_out: u32,
    /// The sequence number whose acknowledgment ends the round.
    round_end: SeqNum,
    /// Largest amount of data in flight at any time since the window was last full, in the unit of the window.
    used: u32,
    /// When the congestion window was last full, or last changed.
    stamp: Time,
    /// When data were last sent.
    last_sent: Time,
    /// When a segment was last sent, with or without data.
    last_departure: Time,
    /// The rate that the congestion window allows, in octets per second, as of the last acknowledgment; 0 before
    /// the first.
    rate: u64,
}

impl WindowUsage {
    /// Creates the state of a connection whose SND.UNA is `una`.
    pub(crate) fn begin(una: SeqNum, now: Time) -> Self {
        Self { round_end: una, stamp: now, last_sent: now, ..Self::default() }
    }

    /// Records that data were sent or retransmitted.
    pub(crate) fn on_data_sent(&mut self, now: Time) {
        self.last_sent = now;
    }

    /// Records that a segment was sent, with or without data.
    pub(crate) fn on_departure(&mut self, now: Time) {
        self.last_departure = now;
    }

    /// Returns the rate that the congestion window allows, in octets per second; unlimited before it is known.
    pub(crate) fn rate(&self) -> u64 {
        if self.rate == 0 { u64::MAX } else { self.rate }
    }

    /// Sets the rate that the congestion window allows, in octets per second.
    pub(crate) fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// Returns when a segment was last sent.
    pub(crate) fn last_departure(&self) -> Time {
        self.last_departure
    }

    /// Records a change of the congestion window.
    pub(crate) fn on_window_changed(&mut self, now: Time) {
        self.stamp = now;
    }
}

impl Endpoint {
    /// Returns the amount of data in flight, in the unit of the congestion window.
    pub(crate) fn in_flight(&self) -> u32 {
        let unit = self.config.congestion_unit;
        let in_flight = self.board.in_flight(unit);
        if self.config.limited_transmit || self.episode.phase() >= Phase::Recovery {
            return in_flight;
        }
        // Without RFC 3042 the first duplicate acknowledgments allow no new data.
        in_flight + self.board.sacked().count(unit)
    }

    /// Returns the time since data were last sent, in whole clock ticks. Linux: tcp_jiffies32 - lsndtime.
    pub(crate) fn idle(&self, now: Time) -> Duration {
        self.timers.ticks_between(self.usage.last_sent, now)
    }

    /// Returns whether so much of the congestion window is used that acknowledgments may increase it: all of it
    /// or, in slow start, more than half. Always true without congestion window validation.
    pub(crate) fn is_cwnd_limited(&self) -> bool {
        !self.config.cwnd_validation
            || self.usage.is_window_limited
            || (self.cwnd.in_slow_start() && self.cwnd.cwnd() < 2 * self.usage.max_out)
    }

    /// Returns whether an acknowledgment may increase the congestion window, if `in_flight` was outstanding before
    /// it. Linux 2.6.16: net/ipv4/tcp_cong.c tcp_is_cwnd_limited, whose first rule applies without segmentation
    /// offload.
    pub(crate) fn was_cwnd_limited(&self, in_flight: u32) -> bool {
        if self.config.grows_when_full { in_flight >= self.cwnd.cwnd() } else { self.is_cwnd_limited() }
    }

    /// Records that data were sent or, with `limited`, that the congestion window prevented it.
    pub(crate) fn validate_window(&mut self, now: Time, limited: bool) {
        if !self.config.cwnd_validation {
            return;
        }
        let out = self.board.packets_out().count(self.config.congestion_unit);
        let usage = &mut self.usage;
        let new_round = self.snd.una().at_or_after(usage.round_end);
        if new_round || limited || (!usage.is_window_limited && out > usage.max_out) {
            usage.is_window_limited = limited;
            usage.max_out = out;
            usage.round_end = self.snd.nxt();
        }
        if self.was_cwnd_limited(out) {
            self.usage.used = 0;
            self.usage.stamp = now;
            return;
        }
        self.usage.used = self.usage.used.max(out);
        let unused = self.timers.ticks_between(self.usage.stamp, now);
        if self.config.slow_start_after_idle && unused >= self.rtt.rto() {
            self.shrink_unused_window(now);
        }
    }

    /// Reduces a congestion window that has not been full for an RTO: to the mean of the window and its used part.
    /// RFC 2861 section 3.
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

    /// Before data are sent, halves the congestion window for each RTO of idle time, down to the restart window.
    /// RFC 2861 section 3, RFC 5681 section 4.1.
    pub(crate) fn restart_after_idle(&mut self, now: Time) {
        let mut idle = self.idle(now);
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
            self.cwnd.set_ssthresh(self.cwnd.current_ssthresh());
        }
    }
}
