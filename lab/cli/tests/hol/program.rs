//! Runs the real program.

use std::path::Path;
use std::process::{Command, Output};

/// The program under test.
pub const BIN: &str = env!("CARGO_BIN_EXE_hol");

/// Runs `hol` with `arguments` in `dir`.
pub fn hol(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(BIN).current_dir(dir).args(arguments).output().unwrap()
}

/// Returns the exit code.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {output:?}"))
}

/// Runs the program, which must succeed, and returns its standard output.
#[track_caller]
pub fn ok(dir: &Path, arguments: &[&str]) -> String {
    let output = hol(dir, arguments);
    assert_eq!(code(&output), 0, "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program, which must fail, and returns its exit code and standard error.
#[track_caller]
pub fn failure(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let output = hol(dir, arguments);
    assert_ne!(code(&output), 0, "{arguments:?} succeeded");
    (code(&output), String::from_utf8(output.stderr).unwrap())
}
