//! The times at which each part of a direction's sequence space was sent and arrived.

use hol_base::Time;

use crate::spans::{Parts, Spans};

/// The times when the parts of a sequence space were sent and arrived. The parts are octets of TCP and MPTCP,
/// and chunks of SCTP.
#[derive(Debug, Default)]
pub(crate) struct DeliveryHistory {
    sent: Spans<Time>,
    arrived: Spans<Arrival>,
}

/// The first copy of some data to arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The time at which the copy was sent.
    pub sent: Time,
    /// The time at which the copy arrived.
    pub at: Time,
}

impl DeliveryHistory {
    /// Notes that a range was sent; returns the parts that were sent for the first time.
    pub fn handle_sent(&mut self, range: std::ops::Range<u64>, now: Time) -> Parts {
        self.sent.fill(range, now)
    }

    /// Notes that a copy of a range arrived.
    pub fn handle_arrival(&mut self, range: std::ops::Range<u64>, arrival: Arrival) {
        self.arrived.fill(range, arrival);
    }

    /// Returns whether everything sent has arrived.
    pub const fn has_all_arrived(&self) -> bool {
        self.sent.total() == self.arrived.total()
    }

    /// Returns when octets were first sent.
    pub const fn sent(&self) -> &Spans<Time> {
        &self.sent
    }

    /// Returns the first arrivals of octets.
    pub const fn arrived(&self) -> &Spans<Arrival> {
        &self.arrived
    }
}
