//! Compares how often runs collapse, which a median run does not show.

use hol_measure::{CONFIDENCE, fisher_exact};

/// The number of collapsed runs in each world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollapseCounts {
    /// Numbers of collapsed runs and of all runs in the kernel.
    pub kernel: (u64, u64),
    /// Numbers of collapsed runs and of all runs in the model.
    pub model: (u64, u64),
}

impl CollapseCounts {
    /// Returns the p-value of the hypothesis that runs collapse equally often in both worlds.
    pub fn p_value(&self) -> f64 {
        fisher_exact(self.kernel, self.model)
    }

    /// Returns whether the runs of neither world collapse significantly more often.
    pub fn agree(&self) -> bool {
        self.p_value() >= 1.0 - CONFIDENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_collapse_of_the_model_alone_is_a_difference() {
        let agree = |kernel, model| CollapseCounts { kernel, model }.agree();
        assert!(agree((0, 8), (4, 80)) && agree((1, 8), (0, 20)));
        assert!(!agree((0, 8), (40, 80)) && !agree((3, 40), (90, 400)));
    }
}
