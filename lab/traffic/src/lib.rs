//! Traffic control, tc(8): a link of the network as a chain of queueing disciplines.
//!
//! [`ShapedLink`] returns the stages that implement a link's settings, or an error that names a setting that no
//! kernel supports; `shaper` and `red` make packets queue. [`emulator`] and [`queue`] encode the options of a
//! stage as netlink attributes, [`discipline`] encodes its position in the chain, and [`Discipline`] parses the
//! kernel's report. The worlds send the attributes to the kernel, and route packets through the interfaces.

pub mod discipline;
pub mod emulator;
pub mod queue;
mod red;
mod shaped_link;
mod shaper;

pub use discipline::Discipline;
pub use red::{IdleAverageDecay, RedParameters};
pub use shaped_link::{
    ChangingSettings, DropFilter, Emulator, Gate, Loss, ShapedLink, Stage, Unsupported, apply,
};
pub use shaper::{Shaper, ShaperQueue};
