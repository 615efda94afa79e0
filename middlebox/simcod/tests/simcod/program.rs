//! Runs the real program.

use std::path::Path;
use std::process::{Command, Output};

/// The program under test.
pub const BIN: &str = env!("CARGO_BIN_EXE_simcod");

/// Runs `simcod` with `arguments` in `dir`.
pub fn simcod(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(BIN).current_dir(dir).args(arguments).output().unwrap()
}

/// Returns the exit code.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {output:?}"))
}

/// Returns the output of a run that must succeed.
#[track_caller]
pub fn ok(dir: &Path, arguments: &[&str]) -> String {
    let output = simcod(dir, arguments);
    assert_eq!(code(&output), 0, "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the exit code and the error output of a run that must fail.
#[track_caller]
pub fn failure(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let output = simcod(dir, arguments);
    assert_ne!(code(&output), 0, "{arguments:?} succeeded");
    (code(&output), String::from_utf8(output.stderr).unwrap())
}
