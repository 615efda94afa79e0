//! Costs of the parts of a request: the turn of a session ends when the sum of costs reaches a limit.
//!
//! The unit of all costs is about a nanosecond of processor time. Costs are counted, not measured, so turns are
//! the same on every machine.

/// Cost of processing and answering a message, in units of about 1 ns of processor time.
pub const MESSAGE: u64 = 600;
/// Cost of examining a rule, in units of about 1 ns of processor time.
pub const EXAMINATION: u64 = 150;
/// Cost of comparing a new rule with a disable rule, in units of about 1 ns of processor time. The benchmark
/// `hostile` measures 40 ns in its case wide-beside-blocks.
pub const COMPARISON: u64 = 50;
/// Cost of counting the elements of a rule and comparing them with the quota, in units of about 1 ns of processor
/// time.
pub const FOOTPRINT: u64 = 300;
/// Cost of searching an address for free ports, in units of about 1 ns of processor time.
pub const SEARCH: u64 = 500;
/// Cost of logging a refusal, in units of about 1 ns of processor time.
pub const REFUSAL_LINE: u64 = 2_500;
/// Cost of writing a line of an audit log, in units of about 1 ns of processor time.
pub const AUDIT_LINE: u64 = 5_000;
/// Cost of adding an element to a packet filter or removing one, in units of about 1 ns of processor time.
pub const ELEMENT: u64 = 10_000;
/// Cost of notifying a session of a rule, in units of about 1 ns of processor time.
pub const NOTIFICATION: u64 = 600;
