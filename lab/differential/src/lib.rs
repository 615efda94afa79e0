//! Two worlds, one scenario: where do they differ?
//!
//! [`Space`] lists everything that an experiment may say, as the JSON Schema and the stacks describe it, so that a new key is drawn
//! from the day on which it is written. [`Draw`] takes scenarios from it at random, [`compare()`] runs one in two worlds, and
//! [`shrink()`] finds the smallest scenario in which they still differ. [`Trace`] is what hosts sent in one run, with relative numbers,
//! and [`Trace::first_difference`] the first packet that another run does not have.

mod compare;
mod coverage;
mod draw;
mod drawn;
mod relative;
mod shrink;
mod space;
mod trace;
mod values;

pub use compare::{Comparison, Verdict, compare, trace};
pub use coverage::Coverage;
pub use draw::Draw;
pub use drawn::Drawn;
pub use shrink::shrink;
pub use space::Space;
pub use trace::{Difference, Line, Sent, Trace, beside};
pub use values::Values;
