//! When each part of a direction's sequence space was sent and arrived.

use hol_base::Time;

use crate::spans::{Parts, Spans};

/// The history of a sequence space: octets of TCP and MPTCP, chunks of SCTP.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    sent: Spans<Time>,
    arrived: Spans<Arrival>,
}

/// The copy that arrived first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When it was sent.
    pub sent: Time,
    /// When it arrived.
    pub at: Time,
}

impl Passage {
    /// Notes that a range was sent; returns the parts sent for the first time.
    pub fn depart(&mut self, range: std::ops::Range<u64>, now: Time) -> Parts {
        self.sent.fill(range, now)
    }

    /// Notes that a copy of a range arrived.
    pub fn arrive(&mut self, range: std::ops::Range<u64>, arrival: Arrival) {
        self.arrived.fill(range, arrival);
    }

    /// Returns whether everything sent has arrived.
    pub const fn is_through(&self) -> bool {
        self.sent.total() == self.arrived.total()
    }

    pub const fn sent(&self) -> &Spans<Time> {
        &self.sent
    }

    pub const fn arrived(&self) -> &Spans<Arrival> {
        &self.arrived
    }
}
