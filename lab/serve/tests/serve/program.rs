//! The programs under test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `hol`, which cargo builds in the same directory, but not for the tests of this crate.
pub fn hol() -> PathBuf {
    let hol = Path::new(env!("CARGO_BIN_EXE_hol-serve")).with_file_name("hol");
    assert!(hol.is_file(), "{}: not found; build hol first: cargo build -p headofline", hol.display());
    hol
}

/// `hol-serve`, which runs experiments with that `hol`.
pub fn hol_serve() -> Command {
    let mut serve = Command::new(env!("CARGO_BIN_EXE_hol-serve"));
    serve.arg("--hol").arg(hol());
    serve
}
