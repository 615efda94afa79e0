//! The cost of requests: a turn ends after a certain cost, and another session is next.
//!
//! A unit is about a nanosecond of processor time. It is counted, not measured, so turns are the same on
//! every machine.

/// A message is processed and answered.
pub const MESSAGE: u64 = 600;
/// A rule is examined.
pub const LOOK: u64 = 150;
/// The elements of a rule are counted, and compared with the quota.
pub const MEASURE: u64 = 300;
/// The ports of an address are searched for free ones.
pub const SEARCH: u64 = 500;
/// The operator is told of a refusal.
pub const NOTICE: u64 = 2_500;
/// A line of an audit log is written.
pub const LINE: u64 = 5_000;
/// An element of a packet filter is added or removed.
pub const ELEMENT: u64 = 10_000;
/// A session is notified of a rule.
pub const TOLD: u64 = 600;
