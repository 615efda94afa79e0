//! `simcod` as people and scripts use it.
//!
//! A test that needs a tool which a Rust toolchain does not bring is ignored with the reason, and fails without the tool:
//! `cargo test -p simcod --test simcod -- --include-ignored` runs all.

mod agent;
#[path = "../../../daemon/tests/certificates/mod.rs"]
#[allow(dead_code, reason = "not every test needs all of it")]
mod certificates;
mod daemon;
mod firewall;
mod guest;
mod keepalived;
mod port_mapping;
mod program;
mod sctp_udp;
mod serve;
mod standby;
mod tls;
#[path = "../../../filter/tests/nftables/world.rs"]
#[allow(dead_code, reason = "not every test needs all of it")]
mod world;
