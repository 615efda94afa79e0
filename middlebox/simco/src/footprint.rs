//! The resources of a rule in a packet filter.

use crate::{Refusal, Rule};

/// The resources that a rule needs in a packet filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Number of the rule's elements in the packet filter's sets.
    pub elements: usize,
    /// The different shapes of the elements. Every shape in use costs a lookup per packet.
    pub shapes: Vec<ShapeId>,
}

/// The identifier of a shape (a combination of wildcards and prefix lengths), which the packet filter chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShapeId(pub u64);

/// A function that computes the footprint of a rule, always the same for the same rule. Returns a refusal if the packet
/// filter cannot enforce the rule.
pub type FootprintFn = fn(&Rule) -> Result<Footprint, Refusal>;
