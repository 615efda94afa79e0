//! The resources of a rule in a packet filter.

use crate::{Refusal, Rule};

/// The resources of a rule in a packet filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Number of elements in the packet filter's sets.
    pub elements: usize,
    /// Shapes of these elements, without duplicates: every shape in use costs a lookup per packet.
    pub shapes: Vec<ShapeId>,
}

/// A combination of wildcards and prefix lengths, numbered by the packet filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShapeId(pub u64);

/// Computes the footprint of a rule, always the same for the same rule; returns a refusal if the packet filter
/// cannot enforce the rule.
pub type FootprintFn = fn(&Rule) -> Result<Footprint, Refusal>;
