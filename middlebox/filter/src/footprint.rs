//! The resources of a rule in nftables, computed without the kernel.

use hol_simco::{Footprint, Refusal, Rule};

use crate::flow::sample_elements;
use crate::shape::Shape;

/// Maximum number of shapes, which are combinations of prefix lengths and wildcards. Each shape has its own set, in
/// which every packet is looked up.
pub const MAX_SHAPES: usize = 64;

/// Returns the number of elements of a rule, and their shapes. Returns a refusal for a rule that cannot be enforced.
/// RFC 4540 section 8.3.2.
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
