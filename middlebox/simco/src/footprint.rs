//! What a rule takes up where it is put in force.

use crate::{Refusal, Rule};

/// What a rule takes up in a packet filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Elements of sets.
    pub elements: usize,
    /// Kinds of such elements, each once: every kind that is in use costs every packet a look.
    pub shapes: Vec<ShapeId>,
}

/// A combination of wildcards and of lengths of prefixes. Only the packet filter knows which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShapeId(pub u64);

/// Tells what a rule takes up; the refusal of one that cannot be put in force. The same rule always takes up the same.
pub type Measure = fn(&Rule) -> Result<Footprint, Refusal>;
