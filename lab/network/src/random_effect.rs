//! Effects with a constant probability per packet: duplication, corruption, reordering.

use hol_base::{Ratio, Rng, Seed};

/// An effect that hits each packet independently.
#[derive(Debug)]
pub(crate) struct RandomEffect {
    probability: f64,
    rng: Rng,
}

impl RandomEffect {
    /// Creates an effect that hits each packet with the probability `ratio`.
    pub(crate) fn new(ratio: Ratio, seed: Seed) -> Self {
        Self { probability: ratio.value(), rng: seed.rng() }
    }

    /// Returns whether the next packet is hit. At probability zero no number is drawn, since no other effect uses this
    /// stream.
    pub(crate) fn hits_next(&mut self) -> bool {
        self.probability > 0.0 && self.rng.chance(self.probability)
    }
}
