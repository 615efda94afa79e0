//! Records, distributions, intervals, tests.

mod record;

pub use record::{Leg, Outcome, Record, Split};
