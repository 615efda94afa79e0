//! A client transaction over an unreliable transport: when to retransmit the request. RFC 3261 section 17.1.

use bytes::Bytes;
use hol_base::{Duration, Time};

use crate::{Config, Sip};

/// Timers B and F: an unanswered request fails after this many T1. RFC 3261 sections 17.1.1.2 and 17.1.2.2.
const GIVES_UP_AFTER: u64 = 64;

/// A request without a response.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) request: Bytes,
    pub(crate) stream: u16,
    pub(crate) first_sent: Time,
    /// Timer A or E: time from the last copy to the next.
    interval: Duration,
    /// Timer B or F: the time at which the transaction fails.
    gives_up: Time,
}

impl Transaction {
    /// Starts a transaction whose request is sent at `now`.
    pub(crate) fn begin(config: &Config, now: Time, request: Bytes, stream: u16) -> Self {
        let gives_up = now + config.t1 * GIVES_UP_AFTER;
        Self { request, stream, first_sent: now, interval: config.t1, gives_up }
    }

    /// Returns the time of the next action after a copy sent at `sent`.
    pub(crate) fn due(&self, sent: Time) -> Time {
        (sent + self.interval).min(self.gives_up)
    }

    /// Returns whether the transaction has failed without a response.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        now >= self.gives_up
    }

    /// Doubles the interval after a copy was sent.
    pub(crate) fn back_off(&mut self, config: &Config) {
        let doubled = self.interval * 2;
        self.interval = if config.sip == Sip::Request { doubled.min(config.t2) } else { doubled };
    }
}
