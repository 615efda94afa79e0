//! What a rule takes up in nftables, before anybody asks the kernel.

use hol_simco::{Footprint, Refusal, Rule};

use crate::flow::elements;
use crate::shape::Shape;

/// Every set costs every packet a look.
pub const MOST_SHAPES: usize = 64;

/// The elements of a rule and the sets that hold them. RFC 4540 section 8.3.2: what cannot be in force is refused.
pub fn footprint(rule: &Rule) -> Result<Footprint, Refusal> {
    let elements = elements(rule).map_err(|_| Refusal::ConfigurationFailed)?;
    let mut shapes = Vec::new();
    for (element, _) in &elements {
        let shape = Shape::of(element).id();
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    }
    Ok(Footprint { elements: elements.len(), shapes })
}
