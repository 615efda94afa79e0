//! The resources of a rule in nftables, computed without the kernel.

use hol_simco::{Footprint, Refusal, Rule};

use crate::flow::sample_elements;
use crate::shape::Shape;

/// Maximum number of shapes (combinations of prefix lengths and wildcards). Each shape has its own set, in which
/// every packet is looked up.
pub const MAX_SHAPES: usize = 64;

/// Returns the number of elements of a rule, and their shapes. RFC 4540 section 8.3.2: a rule that cannot be
/// enforced is refused.
pub fn footprint(rule: &Rule) -> Result<Footprint, Refusal> {
    let (elements, some) = sample_elements(rule).map_err(|_| Refusal::ConfigurationFailed)?;
    let mut shapes = Vec::new();
    for element in &some {
        let shape = Shape::of(element).id();
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    }
    Ok(Footprint { elements, shapes })
}
