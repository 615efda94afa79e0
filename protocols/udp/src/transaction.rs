//! A client transaction over an unreliable transport: when the request goes out again. RFC 3261 section 17.1.

use bytes::Bytes;
use hol_base::{Duration, Time};

use crate::{Config, Sip};

/// Timers B and F: an unanswered request is given up after so many times T1. RFC 3261 sections 17.1.1.2 and 17.1.2.2.
const GIVES_UP_AFTER: u64 = 64;

/// A request without a response.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) request: Bytes,
    pub(crate) stream: u16,
    pub(crate) first_sent: Time,
    /// Timer A or E: how long after the last copy the next goes out.
    interval: Duration,
    /// Timer B or F.
    gives_up: Time,
}

impl Transaction {
    /// A request that goes out at `now`.
    pub(crate) fn begin(config: &Config, now: Time, request: Bytes, stream: u16) -> Self {
        let gives_up = now + config.t1 * GIVES_UP_AFTER;
        Self { request, stream, first_sent: now, interval: config.t1, gives_up }
    }

    /// When there is something to do, after a copy that went out at `sent`.
    pub(crate) fn due(&self, sent: Time) -> Time {
        (sent + self.interval).min(self.gives_up)
    }

    /// Whether it ends without a response.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        now >= self.gives_up
    }

    /// A copy goes out; the next comes later.
    pub(crate) fn back_off(&mut self, config: &Config) {
        let doubled = self.interval * 2;
        self.interval = if config.sip == Sip::Request { doubled.min(config.t2) } else { doubled };
    }
}
