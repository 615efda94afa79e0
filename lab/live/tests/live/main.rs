//! Runs over this machine's loopback.

mod conformance;
mod hosts;
mod series;

/// The secret of all hosts: a process has one, and the tests here share theirs.
const SECRET: &str = "known to all hosts";
