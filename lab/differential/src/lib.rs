//! One scenario in two worlds: where do they differ?
//!
//! [`Generator`] draws scenarios at random over everything that an experiment file may say, as the JSON Schema and the stacks describe
//! it, so a new key is drawn from the day on which it is written. [`compare()`] runs one in two worlds, and [`shrink()`] finds the
//! smallest scenario in which they still differ. A [`Trace`] is what the hosts of a run sent, with relative numbers, and
//! [`Trace::first_difference`] the first packet that another run does not have.

mod compare;
mod coverage;
mod generator;
mod key_space;
mod random_scenario;
mod relative;
mod shrink;
mod trace;
mod values;

pub use compare::{Comparison, Verdict, compare, trace};
pub use coverage::Coverage;
pub use generator::Generator;
pub use random_scenario::RandomScenario;
pub use shrink::shrink;
pub use trace::{Difference, Line, SentPacket, Trace, beside};
pub use values::Values;
