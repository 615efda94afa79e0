//! A run to be performed.

use crate::point::{Point, RunKey};

/// A run that is to be performed: one repetition of a point.
#[derive(Debug, Clone, Copy)]
pub struct Job<'p> {
    /// Point of the run.
    pub point: &'p Point,
    /// The index of the repetition, from 0.
    pub repetition: u32,
}

impl Job<'_> {
    /// Returns the key of the run.
    pub const fn key(&self) -> RunKey {
        RunKey { point: self.point.id, repetition: self.repetition }
    }

    /// Returns the number of messages in the run.
    pub fn message_count(&self) -> u64 {
        self.point.messages_in(self.repetition)
    }

    /// Returns the approximate processor time of the run, in µs.
    pub fn work(&self) -> u64 {
        let cost = self.point.world.open().map(|world| world.cost());
        cost.map_or(0, |cost| cost.run.saturating_add(cost.message.saturating_mul(self.message_count())))
    }
}
