//! Traffic control, tc(8): a line of the network as a chain of queueing disciplines.
//!
//! [`Line`] says which stages make a line what its settings say, and what no kernel can do; `pace` and `early` are what makes packets
//! wait before they are sent. [`emulator`] and [`queue`] are what the kernel is told of a stage, [`discipline`] where it
//! stands, and [`Discipline`] what the kernel says of one. Who tells it, and through which interfaces packets go, is for the worlds.

pub mod discipline;
mod early;
pub mod emulator;
mod line;
mod pace;
pub mod queue;

pub use discipline::Discipline;
pub use early::{Damping, Early};
pub use line::{Changing, Emulator, Filter, Line, Loss, Stage, Unsupported, apply};
pub use pace::{Pace, Waiting};
