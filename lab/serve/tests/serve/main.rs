//! `hol-serve` as people have it: a server with an API and pages, which runs experiments with `hol`.
//!
//! A test that needs a tool which a Rust toolchain does not bring is ignored with the reason, and fails without the tool:
//! `cargo test -p hol-serve --test serve -- --include-ignored` runs all.

mod browser;
mod lab;
mod program;
