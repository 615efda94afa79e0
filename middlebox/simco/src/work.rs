//! What requests cost, counted: a turn ends when it has been enough, and the next is another's.
//!
//! A unit is about a nanosecond of a processor. It is counted, not measured, so that the same requests make the same
//! turns on every machine.

/// A message is taken and answered.
pub const MESSAGE: u64 = 200;
/// A rule is looked at.
pub const LOOK: u64 = 50;
/// An element is counted that a rule would have.
pub const MEASURE: u64 = 100;
/// An element of a packet filter is added or removed.
pub const ELEMENT: u64 = 10_000;
/// A session is told of a rule.
pub const TOLD: u64 = 600;
