//! What befalls each packet with a constant probability: duplication, corruption, reordering.

use hol_base::{Ratio, Rng, Seed};

/// Strikes each packet independently.
#[derive(Debug)]
pub(crate) struct Chance {
    probability: f64,
    rng: Rng,
}

impl Chance {
    pub(crate) fn new(ratio: Ratio, seed: Seed) -> Self {
        Self { probability: ratio.value(), rng: seed.rng() }
    }

    /// Whether it strikes the next packet. What can never strike draws nothing: the stream is its own.
    pub(crate) fn strikes(&mut self) -> bool {
        self.probability > 0.0 && self.rng.chance(self.probability)
    }
}
