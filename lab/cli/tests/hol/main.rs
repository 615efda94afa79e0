//! The program `hol` as users and scripts run it.
//!
//! A test that needs a tool outside of a Rust toolchain is ignored with a reason, and fails without the tool: `cargo
//! test -p headofline --test hol -- --include-ignored` runs all tests. Long tests are in modules called `nightly`:
//! `--include-ignored --skip nightly::` omits them.

mod advise;
mod cluster;
mod commands;
mod companions;
mod guide;
mod kernel;
mod live;
mod live_hosts;
mod ns2_peer;
mod ns2_trace;
mod old_results;
mod packetdrill;
mod path;
mod program;
mod reference;
mod replay;
mod shards;
mod sweeps;
mod topology;
mod traces;
