//! The drop-tail queue before a line.

use std::collections::VecDeque;

use hol_base::QueueLimit;

use crate::line::Crossing;

/// Packets that wait for the transmitter, first in first out; who finds it full is dropped.
///
/// The limit counts the packet in transmission too: a limit of 6 packets is one on the line and five behind
/// it. ns-2's DropTail and dummynet behave the same.
#[derive(Debug)]
pub(crate) struct DropTail {
    limit: QueueLimit,
    waiting: VecDeque<Crossing>,
    /// Octets of the IP packets that wait.
    octets: u64,
}

impl DropTail {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self { limit, waiting: VecDeque::new(), octets: 0 }
    }

    /// How many packets wait, and their octets.
    pub(crate) fn waiting(&self) -> (u64, u64) {
        (self.waiting.len() as u64, self.octets)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether there is room for `length` octets beside those that wait and the `in_service` on the line.
    pub(crate) fn has_room(&self, length: u64, in_service: u64) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => self.waiting.len() as u64 + 2 <= limit,
            QueueLimit::Bytes(limit) => self.octets + in_service + length <= limit,
        }
    }

    pub(crate) fn push(&mut self, crossing: Crossing) {
        self.octets += crossing.length();
        self.waiting.push_back(crossing);
    }

    pub(crate) fn pop(&mut self) -> Option<Crossing> {
        let crossing = self.waiting.pop_front()?;
        self.octets -= crossing.length();
        Some(crossing)
    }
}
