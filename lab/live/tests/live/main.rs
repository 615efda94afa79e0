//! Runs over this machine's loopback.

mod conformance;
mod hosts;
mod series;

/// The secret of all hosts: a process has only one.
const SECRET: &str = "known to all hosts";
