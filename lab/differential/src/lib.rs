//! Differential tests: runs random scenarios in two worlds and reports the first difference.
//!
//! [`Generator`] draws scenarios over all keys and options that the JSON Schema and the stacks describe, so that a new key needs no
//! change here. [`compare()`] runs a scenario in two worlds, and [`shrink()`] finds the smallest scenario in which they still differ. A
//! [`Trace`] holds the packets that the hosts of a run sent, with relative sequence numbers, and [`Trace::first_difference`] returns the
//! first packet in which two runs differ.

mod compare;
mod coverage;
mod generator;
mod key_space;
mod random_scenario;
mod relative_numbers;
mod run_values;
mod shrink;
mod trace;

pub use compare::{Comparison, Verdict, compare, trace};
pub use coverage::{Coverage, Tally};
pub use generator::Generator;
pub use random_scenario::{RandomScenario, point_to_compare};
pub use run_values::RunValues;
pub use shrink::shrink;
pub use trace::{Difference, PacketOutcome, SentPacket, Trace, TraceRow, align};
