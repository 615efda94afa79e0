//! The program `hol` as people and scripts use it.
//!
//! A test that needs a tool which a Rust toolchain does not bring is ignored with the reason, and fails without the tool:
//! `cargo test -p headofline --test hol -- --include-ignored` runs all. What takes long is in modules called `nightly`:
//! `--include-ignored --skip nightly::` leaves it out.

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
