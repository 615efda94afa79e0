//! A client transaction over an unreliable transport: when to retransmit the request. RFC 3261 section 17.1.

use bytes::Bytes;
use hol_base::{Duration, Time};

use crate::{Config, SipTransaction};

/// Duration of timers B and F in units of T1, after which an unanswered request fails. RFC 3261 sections
/// 17.1.1.2 and 17.1.2.2.
const TIMEOUT_IN_T1: u64 = 64;

/// A SIP request that has not been answered.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) request: Bytes,
    pub(crate) stream: u16,
    /// When the first copy of the request was sent.
    pub(crate) first_sent: Time,
    /// Timer A or E: time from the last copy of the request to the next.
    interval: Duration,
    /// Timer B or F: the time at which the transaction fails.
    fails_at: Time,
}

impl Transaction {
    /// Starts a transaction whose request is sent at `now`.
    pub(crate) fn begin(config: &Config, now: Time, request: Bytes, stream: u16) -> Self {
        let fails_at = now + config.t1 * TIMEOUT_IN_T1;
        Self { request, stream, first_sent: now, interval: config.t1, fails_at }
    }

    /// Returns when the transaction must act next, if a copy of the request was sent at `sent`.
    pub(crate) fn due(&self, sent: Time) -> Time {
        (sent + self.interval).min(self.fails_at)
    }

    /// Returns whether the transaction has failed because no response has arrived in time.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        now >= self.fails_at
    }

    /// Doubles the interval after a copy of the request was sent, up to T2 for requests other than INVITE.
    pub(crate) fn back_off(&mut self, config: &Config) {
        let doubled = self.interval * 2;
        self.interval = if config.sip == SipTransaction::Request { doubled.min(config.t2) } else { doubled };
    }
}
