//! The persist timer, which probes a closed window. RFC 9293 section 3.8.6.1.

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_transport::{Event, Failure};
use hol_wire::tcp::Flags;

use crate::Endpoint;
use crate::timers::TimerPurpose;

/// The state of zero-window probes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Persist {
    /// Number of probes sent since the peer last answered.
    unanswered: u32,
    /// Number of probes sent since the window closed. Each doubles the interval.
    probes_sent: u32,
    /// When the persist timer first expired after the window had closed; `None` before. Linux: icsk_probes_tstamp.
    first_expiry: Option<Time>,
}

impl Endpoint {
    /// Handles the expiry of the persist timer: sends a zero-window probe, and doubles the interval.
    pub(crate) fn on_persist_timeout(&mut self, now: Time) {
        if self.board.len() > 0 || !self.queue.has_unsent() {
            self.episode.persist = Persist::default();
            return;
        }
        let since = *self.episode.persist.first_expiry.get_or_insert(now);
        let limit = self.config.user_timeout;
        let is_timed_out = !limit.is_zero() && since < now && self.timers.ticks_between(since, now) >= limit;
        if is_timed_out || self.episode.persist.unanswered >= self.config.max_retries {
            return self.end(Event::Failed { reason: Failure::WindowClosed });
        }
        self.episode.persist.unanswered += 1;
        self.episode.persist.probes_sent += 1;
        if self.snd.window_end().after(self.snd.nxt()) {
            // The window is open, but smaller than a segment: the octets that fit are sent. RFC 9293 section 3.8.6.2.1.
            self.send_partial(now);
            return;
        }
        // One octet before SND.UNA, so that the peer must answer.
        let seq = self.snd.una() - 1;
        self.transmit(now, seq, Flags::ACK, Bytes::new(), (now, false));
        self.await_window(now);
    }

    /// Starts the timer of the next zero-window probe: an RTO, or twice the previous interval.
    fn await_window(&mut self, now: Time) {
        let wait = self.rtt.rto() * (1 << self.episode.persist.probes_sent.min(16));
        let wait = wait.min(self.config.rto_max);
        let left = self.until_probes_time_out(now).map_or(wait, |left| left.min(wait));
        self.timers.arm(now, TimerPurpose::Persist, left);
    }

    /// Returns the remaining user timeout, counted from the first probe; `None` without a user timeout. Linux:
    /// tcp_clamp_probe0_to_user_timeout.
    fn until_probes_time_out(&self, now: Time) -> Option<Duration> {
        let limit = Some(self.config.user_timeout).filter(|limit| !limit.is_zero())?;
        let probed = self.timers.ticks_between(self.episode.persist.first_expiry?, now);
        Some(limit.saturating_sub(probed).max(self.config.timer_slack))
    }

    /// Handles an ACK while no data are outstanding: lets the persist timer continue if the window is still
    /// closed, otherwise stops it.
    pub(crate) fn persist_or_stop(&mut self, now: Time) {
        self.episode.persist.unanswered = 0;
        if self.snd.usable_window() > 0 {
            self.episode.persist.probes_sent = 0;
            self.episode.persist.first_expiry = None;
        }
        let size = self.queue.length().min(self.payload_limit()) as u32;
        if self.queue.has_unsent() && (self.snd.nxt() + size).after(self.snd.window_end()) {
            self.await_window(now);
        } else if self.timers.is_armed_for(TimerPurpose::Persist) {
            self.timers.disarm();
        }
    }
}
