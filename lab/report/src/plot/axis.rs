//! One axis of a panel.

use super::scale::Scale;

/// A scale with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The mapping from values to positions.
    pub scale: Scale,
    /// The quantity and its unit.
    pub label: String,
}

impl Axis {
    /// Creates an axis called `label`.
    pub fn new(scale: Scale, label: &str) -> Self {
        Self { scale, label: label.to_owned() }
    }
}
