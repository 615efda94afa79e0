//! The agreement of two worlds on a claim, on the current stack, which both have.

use crate::claims::JudgedClaim;

/// The agreement of two worlds on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The claim holds in both worlds, or in neither.
    Same,
    /// The claim holds in the model, and not in the kernel.
    ModelOnly,
    /// The claim holds in the kernel, and not in the model.
    KernelOnly,
    /// Only the model decides the claim.
    OpenInKernel,
    /// Only the kernel decides the claim.
    OpenInModel,
    /// Neither world decides the claim.
    Open,
}

impl Agreement {
    /// Compares two results, the model's first.
    const fn of(model: Option<bool>, kernel: Option<bool>) -> Self {
        match (model, kernel) {
            (Some(true), Some(false)) => Self::ModelOnly,
            (Some(false), Some(true)) => Self::KernelOnly,
            (Some(_), Some(_)) => Self::Same,
            (Some(_), None) => Self::OpenInKernel,
            (None, Some(_)) => Self::OpenInModel,
            (None, None) => Self::Open,
        }
    }

    /// Returns whether the claim holds in one world and fails in the other.
    pub const fn is_dispute(self) -> bool {
        matches!(self, Self::ModelOnly | Self::KernelOnly)
    }
}

/// Compares the verdicts of two worlds claim by claim. Both lists have the claims of one study in the same
/// order.
pub(super) fn compare_claims(model: &[JudgedClaim], kernel: &[JudgedClaim]) -> Vec<Agreement> {
    let today = |judged: &JudgedClaim| judged.findings.first().and_then(|(_, finding)| finding.holds);
    model.iter().zip(kernel).map(|(model, kernel)| Agreement::of(today(model), today(kernel))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_that_one_world_leaves_open_is_not_disputed() {
        let [yes, no, open] = [Some(true), Some(false), None];
        let disputes =
            [(yes, no), (no, yes)].map(|(model, kernel)| Agreement::of(model, kernel).is_dispute());
        assert_eq!(disputes, [true, true]);
        for (model, kernel) in [(yes, yes), (no, no), (yes, open), (open, no), (open, open)] {
            assert!(!Agreement::of(model, kernel).is_dispute(), "{model:?} {kernel:?}");
        }
        assert_eq!(Agreement::of(open, no), Agreement::OpenInModel);
    }
}
