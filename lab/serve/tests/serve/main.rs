//! Tests of `hol-serve` as users run it: a server with an API and pages, which runs experiments with `hol`.
//!
//! A test that needs a tool that is not part of a Rust toolchain is ignored with the reason, and fails without the tool.
//! `cargo test -p hol-serve --test serve -- --include-ignored` runs all.

mod browser;
mod lab;
mod memory;
mod program;
