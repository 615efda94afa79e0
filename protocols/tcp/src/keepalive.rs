//! Keepalive: probes an idle connection whose peer may be gone. RFC 9293 section 3.8.4. Linux:
//! tcp_keepalive_timer.

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_transport::{Event, Failure};
use hol_wire::tcp::Flags;

use crate::{Endpoint, State};

/// The state of keepalive: when the peer last sent a segment, and the unanswered probes.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeepAlive {
    /// When a segment of the peer last arrived.
    last_segment: Time,
    /// Number of probes sent since the peer's last segment.
    unanswered: u32,
}

impl KeepAlive {
    /// Handles an acknowledgment or data of the peer. Linux: rcv_tstamp, lrcvtime, icsk_probes_out.
    pub(crate) fn on_segment(&mut self, now: Time) {
        *self = Self { last_segment: now, unanswered: 0 };
    }
}

impl Endpoint {
    /// Starts the keepalive timer, because the connection is open.
    pub(crate) fn start_keepalive(&mut self, now: Time) {
        self.keepalive.on_segment(now);
        if !self.config.keepalive.is_zero() {
            self.timers.arm_keepalive(now, self.config.keepalive);
        }
    }

    /// Sends a keepalive probe if the peer has been silent for long enough, or fails the connection after too many
    /// of them.
    pub(crate) fn on_keepalive_timeout(&mut self, now: Time) {
        let idle = self.config.keepalive;
        if matches!(self.machine.state(), State::Closed | State::TimeWait) {
            return;
        }
        // The retransmission timer covers data in flight.
        if self.board.len() > 0 || self.queue.has_unsent() {
            return self.timers.arm_keepalive(now, idle);
        }
        let silent = self.timers.ticks_between(self.keepalive.last_segment, now);
        if silent < idle {
            return self.timers.arm_keepalive(now, idle - silent);
        }
        if self.is_peer_gone(silent) {
            self.transmit(now, self.snd.nxt(), Flags::RST | Flags::ACK, Bytes::new(), (now, false));
            return self.end(Event::Failed { reason: Failure::TimedOut });
        }
        // One octet before SND.UNA, so that the peer must answer.
        let seq = self.snd.una() - 1;
        self.transmit(now, seq, Flags::ACK, Bytes::new(), (now, false));
        self.keepalive.unanswered += 1;
        self.timers.arm_keepalive(now, self.config.keepalive_interval);
    }

    /// Returns whether the connection has failed: after the user timeout if there is one, otherwise after the
    /// maximum number of probes.
    fn is_peer_gone(&self, silent: Duration) -> bool {
        let user_timeout = self.config.user_timeout;
        match user_timeout.is_zero() {
            true => self.keepalive.unanswered >= self.config.keepalive_probes,
            false => silent >= user_timeout && self.keepalive.unanswered > 0,
        }
    }
}
