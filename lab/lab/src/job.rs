//! A run that is to be done.

use crate::point::{Point, RunKey};

/// A repetition of a point.
#[derive(Debug, Clone, Copy)]
pub struct Job<'p> {
    /// Its point.
    pub point: &'p Point,
    /// Which repetition, from 0.
    pub repetition: u32,
}

impl Job<'_> {
    /// Its name.
    pub const fn key(&self) -> RunKey {
        RunKey { point: self.point.id, repetition: self.repetition }
    }

    /// Its messages.
    pub fn messages(&self) -> u64 {
        self.point.messages_in(self.repetition)
    }

    /// About how much processor time it takes, in µs.
    pub fn work(&self) -> u64 {
        let cost = self.point.world.open().map(|world| world.cost());
        cost.map_or(0, |cost| cost.run.saturating_add(cost.message.saturating_mul(self.messages())))
    }
}
