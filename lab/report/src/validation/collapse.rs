//! Runs that do not carry their load: a median run does not see how often they come.

use hol_measure::{CONFIDENCE, fisher_exact};

/// How many runs collapsed in each world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collapses {
    /// In the kernel: those that did, of all.
    pub kernel: (u64, u64),
    /// In the model: those that did, of all.
    pub model: (u64, u64),
}

impl Collapses {
    /// Probability of shares this uneven if runs collapsed as often in both worlds.
    pub fn p(&self) -> f64 {
        fisher_exact(self.kernel, self.model)
    }

    /// Neither world's runs surely collapse more often.
    pub fn agree(&self) -> bool {
        self.p() >= 1.0 - CONFIDENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_to_the_model_alone_and_often_is_a_difference() {
        let agree = |kernel, model| Collapses { kernel, model }.agree();
        assert!(agree((0, 8), (4, 80)) && agree((1, 8), (0, 20)));
        assert!(!agree((0, 8), (40, 80)) && !agree((3, 40), (90, 400)));
    }
}
