//! Runs over this machine's loopback.

mod conformance;
mod hosts;
mod series;
