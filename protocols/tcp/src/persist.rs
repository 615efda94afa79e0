//! The persist timer, which probes a closed window. RFC 9293 section 3.8.6.1.

use bytes::Bytes;
use hol_base::Time;
use hol_transport::Event;
use hol_wire::tcp::Flags;

use crate::Endpoint;
use crate::timers::Purpose;

/// The state of zero-window probes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Persist {
    /// Probes since the peer last answered.
    unanswered: u32,
    /// Probes since the window closed; each doubles the interval.
    sent: u32,
}

impl Endpoint {
    /// Sends a probe when the persist timer expires, and doubles its interval.
    pub(crate) fn persist_timeout(&mut self, now: Time) {
        if self.board.len() > 0 || !self.queue.has_unsent() {
            self.episode.persist = Persist::default();
            return;
        }
        if self.episode.persist.unanswered >= self.config.max_retries {
            return self.end(Event::Failed { reason: "the peer's window stays closed" });
        }
        self.episode.persist.unanswered += 1;
        self.episode.persist.sent += 1;
        if self.snd.window_end().after(self.snd.nxt()) {
            // The window is open, but smaller than a segment: what fits goes out. RFC 9293 section 3.8.6.2.1.
            self.send_partial(now);
            return;
        }
        // One octet back, so that the peer has to answer.
        let seq = self.snd.una() - 1;
        self.transmit(now, seq, Flags::ACK, Bytes::new(), (now, false));
        self.await_window(now);
    }

    /// Starts the timer of the next probe: an RTO, or twice the previous interval.
    fn await_window(&mut self, now: Time) {
        let wait = self.rtt.rto() * (1 << self.episode.persist.sent.min(16));
        self.timers.arm(now, Purpose::Persist, wait.min(self.config.rto_max));
    }

    /// Handles an ACK while nothing is outstanding: the timer continues only if the window is still closed.
    pub(crate) fn persist_or_stop(&mut self, now: Time) {
        self.episode.persist.unanswered = 0;
        if self.snd.usable_window() > 0 {
            self.episode.persist.sent = 0;
        }
        let size = self.queue.length().min(self.payload_limit()) as u32;
        if self.queue.has_unsent() && (self.snd.nxt() + size).after(self.snd.window_end()) {
            self.await_window(now);
        } else if self.timers.waits_for(Purpose::Persist) {
            self.timers.disarm();
        }
    }
}
