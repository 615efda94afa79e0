//! Traffic control, tc(8): a link of the network as a chain of queueing disciplines.
//!
//! [`ShapedLink`] returns the stages that implement a link's settings, or what no kernel supports; `shaper` and
//! `red` make packets queue. [`emulator`] and [`queue`] encode the options of a stage, [`discipline`] its
//! position, and [`Discipline`] parses the kernel's report. The worlds send these messages and route packets
//! through the interfaces.

pub mod discipline;
pub mod emulator;
pub mod queue;
mod red;
mod shaped_link;
mod shaper;

pub use discipline::Discipline;
pub use red::{IdleAverageDecay, RedParameters};
pub use shaped_link::{ChangingSettings, Emulator, Filter, Loss, ShapedLink, Stage, Unsupported, apply};
pub use shaper::{Shaper, ShaperQueue};
