//! One axis of a panel.

use super::scale::Scale;

/// A scale with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// How values become positions.
    pub scale: Scale,
    /// What is measured and in which unit.
    pub label: String,
}

impl Axis {
    /// An axis called `label`.
    pub fn new(scale: Scale, label: &str) -> Self {
        Self { scale, label: label.to_owned() }
    }
}
