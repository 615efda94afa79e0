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

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes a packet, or gives it back if there is no room beside the `in_service` octets on the line.
    pub(crate) fn push(&mut self, crossing: Crossing, in_service: u64) -> Result<(), Crossing> {
        let room = match self.limit {
            QueueLimit::Packets(limit) => self.waiting.len() as u64 + 2 <= limit,
            QueueLimit::Bytes(limit) => self.octets + in_service + crossing.length() <= limit,
        };
        if !room {
            return Err(crossing);
        }
        self.octets += crossing.length();
        self.waiting.push_back(crossing);
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<Crossing> {
        let crossing = self.waiting.pop_front()?;
        self.octets -= crossing.length();
        Some(crossing)
    }
}
