//! The `hol` command.
fn main() {}
