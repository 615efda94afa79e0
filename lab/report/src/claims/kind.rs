//! Kinds of claims. Only findings count for or against a paper; the others are reported separately.

use serde::Deserialize;

/// The kind of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// A measurement of the paper, or a conclusion from a measurement.
    Finding,
    /// Another interpretation of a finding, which is counted only once.
    Reading,
    /// The range of an axis or the order of curves in a figure of the paper, which its text does not state.
    Figure,
    /// A statement that a calculation, the paper's text or a standard decides.
    Arithmetic,
    /// A fact about our own code or configuration, which shows that our setup is the paper's.
    Configuration,
    /// A finding of a system that is not available here, or of another paper; a substitute is measured, or the claim is
    /// skipped.
    Substitute,
}

impl ClaimKind {
    /// All kinds, findings first.
    pub const ALL: [Self; 6] =
        [Self::Finding, Self::Reading, Self::Figure, Self::Arithmetic, Self::Configuration, Self::Substitute];

    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Finding => "finding",
            Self::Reading => "reading",
            Self::Figure => "figure",
            Self::Arithmetic => "arithmetic",
            Self::Configuration => "configuration",
            Self::Substitute => "substitute",
        }
    }

    /// Returns the heading of the claims of this kind.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Finding => "Findings of the paper",
            Self::Reading => "Other interpretations",
            Self::Figure => "Comparison with the figures",
            Self::Arithmetic => "Arithmetic and texts",
            Self::Configuration => "Our own code and configuration",
            Self::Substitute => "Substitutes",
        }
    }

    /// Returns why the claims of this kind count, or do not.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Finding => {
                "Results that the paper measured, or concluded from its measurements. Only these are counted."
            }
            Self::Reading => {
                "Other interpretations of a finding that the paper leaves open. Not counted: each finding counts once, in the \
                 interpretation closest to the paper's numbers."
            }
            Self::Figure => {
                "Checks whether our values lie within the range of an axis in a figure of the paper, or are in the same order as the curves of the figure. Not counted: the paper does not state this range or order as a result."
            }
            Self::Arithmetic => {
                "Claims that can be decided by calculation, from the paper's text or from a standard. Not counted: no measurement of the paper is repeated."
            }
            Self::Configuration => {
                "Checks that the setup matches the paper's. Not counted: they hold by construction."
            }
            Self::Substitute => {
                "Claims about a system that is not available here, or of another paper. They are checked on a substitute or not at all. Not counted: a substitute shows little about the original."
            }
        }
    }
}
