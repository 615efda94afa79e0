//! Carries packets between two ends, in order, and keeps the clock of both.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_base::Time;

use crate::Bulk;

#[derive(Default)]
pub struct Wire {
    pub now: Time,
    /// Packets in transit, each with its arrival time, destination and octets.
    under_way: VecDeque<(Time, usize, Bytes)>,
}

impl Wire {
    pub fn send(&mut self, to: usize, octets: impl Into<Bytes>) {
        self.under_way.push_back((self.now + Bulk::DELAY, to, octets.into()));
    }

    /// Advances the time to the next arrival or to the deadline `due` of an endpoint. Returns the
    /// packets that arrive then.
    pub fn advance(&mut self, due: Option<Time>) -> Vec<(usize, Bytes)> {
        let arrival = self.under_way.front().map(|(at, ..)| *at);
        self.now =
            Time::earliest([arrival, due]).expect("an event is pending until all messages have arrived");
        let come = self.under_way.partition_point(|(at, ..)| *at <= self.now);
        self.under_way.drain(..come).map(|(_, to, octets)| (to, octets)).collect()
    }
}
